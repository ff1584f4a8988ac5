package event_test

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// meter shows the last loss.
type meter struct{ to io.Writer }

func (m *meter) Take(events []event.Event) error {
	for _, e := range slices.Backward(events) {
		if s, ok := e.(*event.Step); ok {
			_, err := fmt.Fprintf(m.to, "step %d: %.3f\n", s.Step, s.Loss)
			return err
		}
	}
	return nil
}

func (m *meter) Close() error { return nil }

// A sink is one type. It is added to the bus with its policy.
func ExampleSink() {
	bus := event.NewBus()
	bus.Offer("meter", &meter{os.Stdout}, func(text string) { fmt.Println("warning:", text) })
	for n := range int64(3) {
		if err := bus.Publish(&event.Step{Step: n + 1, Loss: 1 / float64(n+1)}); err != nil {
			fmt.Println("a required sink has failed:", err)
		}
	}
	if err := bus.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// step 3: 0.333
}
