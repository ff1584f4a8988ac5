package pipeline

// Delays are called for each batch, in the time in which it is decoded, transferred or trained on. Tests of what
// measures speed set them before a run, so that it is slow where they want; in a program they are nil. Decode may be
// called by several goroutines at the same time.
var Delays struct{ Decode, Transfer, Train func() }

// Delay calls one of Delays.
func Delay(by func()) {
	if by != nil {
		by()
	}
}
