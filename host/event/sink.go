package event

// Sink takes the events of a run, in the order in which they were published. One goroutine at a time calls it.
type Sink interface {
	// Take takes events. They belong to the Bus: what is kept beyond the call has to be copied. A best-effort sink that returns an
	// error gets no more events.
	Take(events []Event) error
	// Close writes what is left and gives back what the sink holds. It is called once, after the last Take.
	Close() error
}

// Durable is a required Sink that can put what it has written on the disk for good.
type Durable interface {
	Sink
	// Sync returns when what was taken so far outlives a crash of the machine. It may be called while nothing is taken.
	Sync() error
}

// Policy says what becomes of a run whose sink is slow or fails.
type Policy int

const (
	// Required sinks must not lose an event: metrics.jsonl, eval.jsonl, the log, the report's figures. Training waits for one that is
	// many thousands of events late, and its error ends the run.
	Required Policy = iota
	// BestEffort sinks are for people and dashboards. Each has a queue of QueueLength events and a goroutine of its own. What the
	// full queue has no room for is dropped, counted and reported. Training never waits for one and never fails with it.
	BestEffort
)

func (p Policy) String() string { return [...]string{"required", "best effort"}[p] }
