// Command pass is a plugin for benchmarks: its one stage reads and writes every value of its tensor once.
package main

import (
	"context"

	"github.com/xtts-host/xtts-host/shared/stage"
)

type pass struct{}

func (pass) Configure(context.Context, *stage.Config) error { return nil }

func (pass) Process(_ context.Context, b *stage.Batch) error {
	x := b.Float32("x")
	for i := range x {
		x[i] *= 1.0001
	}
	return nil
}

func main() {
	stage.Serve(stage.Plugin{ID: "pass", Version: "0", Stages: map[string]func() stage.Stage{"pass": func() stage.Stage { return pass{} }}})
}
