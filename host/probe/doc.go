// Package probe does what could crash, or what this process must not do, in a process of its own: libraries of a driver can take down
// whoever loads them, and a context on the data GPU belongs to nobody but a plugin.
//
// The program starts itself again for that. Its command line calls Serve in the new process, and methods of Command speak for it in
// the old one:
//
//	c := probe.Command{exe, "probe"}   // such that `exe probe NAME ARG` calls Serve(os.Stdout, NAME, ARG)
//	machine, err := c.Machine(ctx)     // the GPUs, as the driver has them
//
// A process that ends without an answer is an error that says how it ended. Each lives for one answer.
package probe
