package event

// Sink takes the events of a run, in the order in which they were published. One goroutine at a time calls it.
type Sink interface {
	// Take takes events. They belong to the Bus: what is kept beyond the call has to be copied. A best-effort sink that returns an
	// error gets no more events.
	Take(events []Event) error
	// Close writes what is left and gives back what the sink holds. It is called once, after the last Take.
	Close() error
}

// Durable is a required sink that can put what it has written on the disk for good.
type Durable interface {
	Sink
	// Sync returns when what was taken so far outlives a crash of the machine. It may be called while nothing is taken.
	Sync() error
}
