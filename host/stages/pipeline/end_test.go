package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFailureStopsEverything(t *testing.T) {
	boom := errors.New("boom")
	fails := func(b *Batch) ([]Rejected, error) {
		if b.Index == 7 {
			return nil, boom
		}
		return nil, nil
	}
	base := func() Config {
		return Config{
			Source: &plan{n: 100}, Decoder: takes(time.Millisecond), Device: device(instant), RingSlots: 4,
			DeviceSlots: 3, Workers: 2, Stages: []Step{{Name: "features", Stage: stageTakes(time.Millisecond)}},
		}
	}
	cases := map[string]func(*Config){
		"decode: boom":         func(c *Config) { c.Decoder = decoder(fails) },
		"stage features: boom": func(c *Config) { c.Stages[0].Stage = newStage(fails) },
		"copy to device slot": func(c *Config) {
			c.Device = device(func(_ int, b *Batch) error { _, err := fails(b); return err })
		},
		"boom": func(c *Config) {
			c.Decoder = decoder(func(b *Batch) ([]Rejected, error) { return []Rejected{{Row: 0}}, nil })
			c.Reject = func(*Batch, []Rejected) error { return boom }
		},
		"stage features rejects row 3, but the row is empty": func(c *Config) {
			c.Decoder = decoder(func(b *Batch) ([]Rejected, error) {
				if b.Rows[3] >= 0 {
					return []Rejected{{Row: 3, Reason: "torn"}}, nil
				}
				return nil, nil
			})
			c.Stages[0].Stage = newStage(func(b *Batch) ([]Rejected, error) {
				return []Rejected{{Row: 0, Reason: "no"}, {Row: 3, Reason: "no"}}, nil
			})
		},
		"stage features rejects row 0, but the row is empty": func(c *Config) {
			c.Stages[0].Stage = newStage(
				func(b *Batch) ([]Rejected, error) { return []Rejected{{Row: 0, Reason: "no"}}, nil })
		},
	}
	for want, change := range cases {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it fails on any goroutine that is left
				cfg := base()
				change(&cfg)
				_, _, err := drive(t, cfg, nil)
				if err == nil || !contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			})
		})
	}
}

func contains(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

func TestCancelLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := New(Config{
			Source: &plan{n: 1 << 30}, Decoder: takes(time.Millisecond), Device: device(instant), RingSlots: 4,
			DeviceSlots: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		for range 5 {
			d, err := p.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			p.Release(d)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
}
