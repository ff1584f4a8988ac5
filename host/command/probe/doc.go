// Package probe runs code in a separate process that could crash, or that the host process must not run: driver
// libraries can crash the process that loads them, and only plugin processes may have a context on the data GPU.
//
// For that, the program starts itself again. Its command line calls Serve in the new process. Methods of Command
// communicate with it:
//
//	c := probe.Command{exe, "probe"}   // such that `exe probe NAME ARG` calls Serve(os.Stdout, NAME, ARG)
//	machine, err := c.Machine(ctx)     // the GPUs, as the driver reports them
//
// If a process ends without an answer, the error says how it ended. Each process gives one answer.
package probe
