// Package watch looks at the GPUs of a run while it trains: what our processes use of their memory, and how busy they are. It writes
// the lines that show it, finds memory that grows without end, and holds processes to their share of a limit.
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
// The driver takes its time to answer, some milliseconds on a busy machine. So it is asked by a goroutine of the Watch alone, and
// whoever trains leaves word and goes on.
//
// # Growth
//
// A process takes memory until it has seen its first batches; what it uses then is its baseline. What a role uses beyond the baselines of
// its processes is growth: 200 MB of it bring a warning, and 500 MB have the process that has grown most give it back. Behind that it
// gets a new baseline.
//
// # Processes that the driver does not know
//
// The driver counts processes as the machine does. In a container with process ids of its own, ours are not among them, and some
// drivers do not say how much a process uses. What the whole card uses beyond what it did at the start stands in for it then.
package watch
