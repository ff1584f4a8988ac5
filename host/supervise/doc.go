// Package supervise runs plugins. A Pool is one plugin as n equal processes that serve any number of stage instances; it
// starts them, gives each call to the process with the fewest in flight, replaces a process that dies, hangs or lies, and
// ends them all without leaving anything behind.
//
//	pool, err := supervise.NewPool(ctx, supervise.Config{Plugin: entry, Workers: 2, Ring: r, Configure: configure})
//	if err != nil {
//		return err // *PluginError: the plugin's own words, with its last lines on stderr
//	}
//	defer pool.Close()
//	...
//	res, err := pool.Call(ctx, supervise.Request{Instance: 0, Slot: 3, Bucket: 1, Step: step, RowKeys: keys})
//	switch {
//	case errors.Is(err, supervise.ErrLost): // the process is gone: build the slot again and call again
//	case err != nil:                        // ErrFailed: the stage says no; ErrCrashLoop: the plugin is hopeless
//	case len(res.Bad) > 0:                  // empty these rows, build the slot again
//	}
//	...
//	err = pool.Drain(ctx) // finish what is in flight, end the processes
//
// The one promise that everything else is built around: when Call returns, whatever it returns, no process writes to that slot
// any more. A process that misses a deadline is not asked but killed, and has been reaped before its calls return.
//
// A plugin process gets nothing of the host but what it needs: an environment built by hand, /dev/null as standard
// input, the ring and the lifeline as descriptors 3 and 4, its folder as working directory and a process group of its own,
// so that Ctrl-C in a terminal reaches the host only, and killing the group takes a script's children along.
// docs/plugin-protocol.md is the specification of what passes between the two.
//
// This is the only package of the host that knows go-plugin.
package supervise
