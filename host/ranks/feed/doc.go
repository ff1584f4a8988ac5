// Package feed lets the ranks of a machine share one ring and one set of plugin processes, so that one data GPU feeds
// the model GPUs of all of them. The first rank of a machine is the owner: it allocates the ring, with slots for all,
// and starts the plugins. The others are guests: they map the same memory, decode their own batches into their own
// slots, and send the calls of their stages to the owner, through a Unix socket.
//
//	machine, err := feed.Find(group, "") // when the ranks have met
//	...
//	f, err := feed.Open(ctx, feed.Config{Meeting: group, Machine: machine, Secret: secret, Need: need})
//	f.Ring                               // the slots of this rank
//
// The owner gives f.Owner.Whole to its plugins, and then calls Serve. A guest calls Plugins. Both return what takes the
// calls of stages, by plugin: pipeline, feature cache and quarantine of a rank do not know whose processes they are.
//
// The socket exists only until all guests are connected (door.go). When a rank ends, the kernel closes the connection:
// calls of a guest then fail with the error of a lost rank, and the owner drops the calls of a guest.
package feed
