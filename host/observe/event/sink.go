package event

// Sink receives the events of a run, in the order in which they were published. One goroutine at a time calls it.
type Sink interface {
	// Take receives events. They belong to the Bus: a sink must copy what it keeps after the call. A best-effort sink
	// that returns an error gets no more events.
	Take(events []Event) error
	// Close writes the remaining data and releases the resources of the sink. It is called once, after the last Take.
	Close() error
}

// Durable is a required sink that can make its data durable.
type Durable interface {
	Sink
	// Sync returns when all data so far would survive a crash of the machine. It is not called during Take.
	Sync() error
}
