// Package dashboard serves a page about runs: one that trains in this process, and others whose folders it reads
// (docs/dashboard.md).
//
//	server, err := dashboard.Listen(dashboard.Config{Address: "127.0.0.1:8080", Flag: dashboard.Flag, Runs: folders})
//	...
//	bus.Offer("dashboard", server, warn) // for a run of this process
//
// The page reads the files of a run folder (package follow). A run of this process adds what no file has: slots, phases
// of the pipeline, plugins (type Live). Nothing that a client does reaches the run: the server reads files and words
// that the run sets, answers a bounded number of requests in a second, and drops a client that does not read.
package dashboard
