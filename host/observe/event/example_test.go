package event_test

import (
	"fmt"
	"io"
	"os"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// losses writes one line per step, for a spreadsheet.
type losses struct{ out io.Writer }

func (l *losses) Take(events []event.Event) error {
	var text []byte
	for _, e := range events {
		if s, ok := e.(*event.Step); ok {
			text = fmt.Appendf(text, "%d,%g\n", s.Step, s.Loss)
		}
	}
	_, err := l.out.Write(text)
	return err
}

func (l *losses) Close() error { return nil }

// A sink is one type. It is added to the bus with its policy.
func ExampleSink() {
	bus := event.NewBus()
	bus.Offer("losses.csv", &losses{os.Stdout}, func(text string) { fmt.Println("warning:", text) })
	for n := range int64(3) {
		if err := bus.Publish(&event.Step{Step: n + 1, Loss: 1 / float64(n+1)}); err != nil {
			fmt.Println("a required sink has failed:", err)
		}
	}
	if err := bus.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1,1
	// 2,0.5
	// 3,0.3333333333333333
}
