// Package supervise runs plugins. A Pool is one plugin as n equal processes, which serve any number of stage instances.
// The pool starts them, sends each call to the process with the fewest calls in flight, replaces a process that dies,
// hangs or violates the protocol, and ends them all without leaving processes or files.
//
//	pool, err := supervise.NewPool(ctx, supervise.Config{Plugin: entry, Workers: 2, Ring: r, Configure: configure})
//	if err != nil {
//		return err // *PluginError: the plugin's message, with its last lines on stderr
//	}
//	defer pool.Close()
//	...
//	res, err := pool.Call(ctx, supervise.Request{Instance: 0, Slot: 3, Bucket: 1, Step: step, RowKeys: keys})
//	switch {
//	case errors.Is(err, supervise.ErrLost): // the process is lost: rebuild the slot and call again
//	case err != nil:                        // ErrFailed: the stage failed; ErrCrashLoop: give the plugin up
//	case len(res.Bad) > 0:                  // empty these rows and rebuild the slot
//	}
//	...
//	err = pool.Drain(ctx) // finish the calls in flight, end the processes
//
// The main guarantee: after Call has returned, with any result, no process writes to that slot. A process that misses a
// deadline is killed, and it has been reaped before its calls return.
//
// A plugin process gets only what it needs: an environment that the host builds, /dev/null as standard input, the ring
// and the lifeline as descriptors 3 and 4, its folder as working directory, and a separate process group. So Ctrl-C in
// a terminal reaches only the host, and killing the group also kills the child processes of a script. Package sandbox
// confines it, with a folder for temporary files of its own.
// docs/plugin-protocol.md specifies the protocol.
//
// This is the only package of the host that uses go-plugin.
package supervise
