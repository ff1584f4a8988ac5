package save

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestDue takes a step every 25 s of virtual time.
func TestDue(t *testing.T) {
	for _, tt := range []struct {
		name     string
		steps    int64
		interval time.Duration
		want     []int64
	}{
		{"never", 0, 0, nil},
		{"by steps", 5, 0, []int64{5, 10}},
		{"by time", 0, time.Minute, []int64{3, 6, 9, 12}},
		{"by both", 5, time.Minute, []int64{3, 5, 8, 10}},
		{"time longer than the run", 0, time.Hour, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDue(tt.steps, tt.interval)
				var got []int64
				for step := range int64(12) {
					time.Sleep(25 * time.Second)
					if d.after(step + 1) {
						got = append(got, step+1)
						d.saved()
					}
				}
				if !slices.Equal(got, tt.want) || d.ever() != (tt.steps+int64(tt.interval) > 0) {
					t.Errorf("after steps %v, want %v; ever %v", got, tt.want, d.ever())
				}
			})
		})
	}
}

// TestDueAgain: a checkpoint that could not be saved is tried again after more and more steps, until one is saved.
func TestDueAgain(t *testing.T) {
	d := newDue(0, 0)
	var got []int64
	d.failed(10)
	for step := int64(11); step < 60; step++ {
		if d.after(step) {
			got = append(got, step)
			if step >= 40 {
				d.saved()
			} else {
				d.failed(step)
			}
		}
	}
	if want := []int64{11, 13, 17, 25, 41}; !slices.Equal(got, want) {
		t.Errorf("tried at %v, want %v", got, want)
	}
}
