// Package sandbox confines the processes of plugins: which files they open, which system calls they make, how much of
// the machine's limits they use.
//
//	launch, err := sandbox.Wrap(cmd, policy, mode) // cmd now starts a launcher, which becomes the program
//	if err != nil {
//		return err // mode is On, and the kernel lacks what it needs
//	}
//	err = cmd.Start()
//	err = launch.Started(err) // nil when the program runs
//	...
//	launch.Close() // when the process has been reaped
//
// The launcher is this same program, started again with LauncherName as its name. It restricts its only thread that
// matters, the one that then executes the plugin's program, in this order: a cgroup, resource limits, capabilities,
// no_new_privs, Landlock, seccomp. So the process keeps its id, its group and the signal for the death of its parent,
// and no line of the plugin runs before the restrictions hold. The child processes of a plugin inherit all of them.
// The launcher runs in an init function of this package, so every program that imports it can start plugins, and needs
// no command for it.
//
// Landlock decides about files, ports of TCP, signals and abstract Unix sockets; what it restricts depends on the
// kernel. seccomp refuses system calls with EPERM, so that a runtime that tries one of them goes on. SECURITY.md says
// what holds where.
package sandbox
