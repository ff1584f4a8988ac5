package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// startAgain kills one run of a kind so many times, in phases drawn at random, and starts it again by the same command
// line. It must come to its end with the losses of an undisturbed run.
func (l *lab) startAgain(ctx context.Context, seed uint64, k kind, kills int) error {
	ref, err := l.reference(ctx, k)
	if err != nil {
		return fmt.Errorf("undisturbed run %s, in %s: %w", k.name, l.dir, err)
	}
	s, err := l.site(filepath.Join(l.dir, "again-"+k.name), "again-"+k.name, k)
	if err != nil {
		return err
	}
	defer s.killAll()
	r := rand.New(rand.NewPCG(seed, uint64(kills)))
	for killed := range kills {
		phase := phases[r.IntN(len(phases)-2)] // not drain and shutdown, which come once, at the end
		next := &injection{fault: fault{"host", "KILL"}, phase: phase, occurrence: 1 + r.IntN(2), held: r.IntN(2) == 0,
			delay: time.Duration(r.IntN(3000)) * time.Microsecond}
		out, err := s.host(ctx, next)
		if err == nil {
			err = s.noProcess()
		}
		if err != nil {
			return err
		}
		if !out.status.Signaled() {
			return errors.Join(out.ended(), fmt.Errorf("the run ended before kill %d of %d: %s", killed+1, kills, next))
		}
	}
	out, err := s.host(ctx, nil)
	if err == nil {
		err = errors.Join(out.ended(), s.clean())
	}
	if err != nil {
		return err
	}
	got, err := s.result()
	if err == nil {
		err = got.compare(&ref.result)
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}
