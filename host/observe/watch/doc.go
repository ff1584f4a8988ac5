// Package watch observes the GPUs of a run during training: the memory that the run's processes use, and the
// utilization. It writes the memory lines, detects memory that grows without end, and enforces the memory share of each
// process.
//
//	w, err := watch.New(watch.Config{Inventory: inventory, Log: log, Say: publish, Roles: []watch.Role{
//		{Name: "Model", Place: placement.Model, Processes: func() []watch.Process { return training }},
//	}})
//	...
//	defer w.Close()
//	w.Start()
//	for each window {
//		w.Window(step, due)
//	}
//	w.Close()
//	figures := w.Figures()
//
// The driver takes some milliseconds to answer on a busy machine. So only the Watch's goroutine calls it, and the
// trainer never waits.
//
// # Growth
//
// The baseline of a process is the memory that it uses after its first batches. The growth of a role is what its
// processes use above their baselines. A growth of 200 MB causes a warning. At 500 MB, the process that has grown most
// must release memory. Then it gets a new baseline.
//
// # Processes that the driver does not know
//
// The driver reports process ids of the machine. In a container with its own process ids, the run's processes are not
// among them, and some drivers do not report the memory of a process. Then the Watch uses the growth of the whole
// card's memory use since the start instead.
package watch
