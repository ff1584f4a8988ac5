package report_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	names := []string{"mel_loss"}
	metrics, err := report.OpenMetrics(filepath.Join(dir, "metrics.jsonl"), names, 0, nil)
	if err != nil {
		log.Fatal(err)
	}
	collector := report.NewCollector(names, report.Before{Steps: metrics.History(), Recent: metrics.Recent()})
	console := report.NewConsole(os.Stdout, os.Stderr, nil)

	bus := event.NewBus()
	bus.RequireFile("metrics.jsonl", metrics)
	bus.Require("report.json", collector)
	bus.Offer("console", console, func(text string) { log.Print(text) })
	bus.Publish(&event.Start{Metrics: names, Total: 2, Every: 1})
	for step := range int64(2) {
		s := &event.Step{
			Step: step + 1, Loss: 3 - float64(step), Metrics: []float64{1.5}, LR: 1e-3, GradNorm: 0.8,
			Rows: make([]int32, 16), Frames: 2000,
			Times: event.Times{Time: 100 * time.Millisecond, InputWait: time.Millisecond},
		}
		if err := bus.Publish(s); err != nil {
			log.Fatal(err)
		}
	}
	if err := bus.Close(); err != nil {
		log.Fatal(err)
	}
	r := &report.Report{Bundle: "myxtts-nano", Device: "cpu", Outcome: report.Done}
	collector.Complete(r, report.Measured{Wall: time.Second})
	if err := r.Write(dir); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d frames/s, limited by: %s\n", int(r.FramesPerSecond), r.Verdict.Bottleneck)
	// Output:
	// step 1/2  loss 3.000  mel_loss 1.500  lr 1.0e-03  grad_norm 0.800
	// step 2/2  loss 2.000  mel_loss 1.500  lr 1.0e-03  grad_norm 0.800   10.0 steps/s  input stall 1.0 %
	// 20000 frames/s, limited by: train
}
