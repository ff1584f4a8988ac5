package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// worldSizes are the numbers of ranks of undisturbed runs, with which rounds are compared.
var worldSizes = []int{2, 3, 4}

// The time that a rank has to end after a fault, with what it saves, after the end of another one, and to notice that.
// A busy machine needs a tenth of them; their distribution is printed.
const (
	endLimit    = 5 * time.Second
	afterDeath  = 2 * time.Second
	noticeLimit = time.Second
)

// rounds disturbs runs of several ranks.
func (l *lab) rounds(ctx context.Context, seed uint64, count, one int) error {
	began := time.Now()
	points := map[int][]map[string]int{} // by the number of ranks, by rank
	for _, ranks := range worldSizes {
		var err error
		if points[ranks], err = l.undisturbed(ctx, ranks); err != nil {
			return fmt.Errorf("undisturbed run of %d ranks, in %s: %w", ranks, l.dir, err)
		}
	}
	numbers, times, failed := make(chan int), timings{}, 0
	var mu sync.Mutex // guards times, failed and the output
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for n := range numbers {
				r := newRound(seed, n, func(ranks, rank int, phase string) int { return points[ranks][rank][phase] })
				found, err := l.playRound(ctx, r)
				mu.Lock()
				times.add(found)
				if err != nil {
					failed++
					fmt.Printf("FAIL %s\n     %v\n     repeat: scripts/test-ranks.sh %d %d; its folder: %s\n", r, err,
						seed, n, l.roundDir(r))
				} else {
					fmt.Printf("ok   %s\n", r)
				}
				mu.Unlock()
			}
		})
	}
	for n := range count {
		if ctx.Err() == nil && (one < 0 || n == one) {
			numbers <- n
		}
	}
	close(numbers)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Printf("\n%srounds with seed %d in %v, %d failed\n", times, seed, time.Since(began).Round(time.Second), failed)
	if failed > 0 {
		return fmt.Errorf("%d rounds failed; their folders are in %s", failed, l.dir)
	}
	return os.RemoveAll(l.dir)
}

func (l *lab) roundDir(r *round) string {
	return filepath.Join(l.dir, fmt.Sprintf("round-%d-%d", r.seed, r.number))
}

func (l *lab) undisturbedDir(ranks int) string {
	return filepath.Join(l.dir, fmt.Sprintf("ranks-%d", ranks))
}

// undisturbed makes the run with which others are compared, and returns how often each rank has reached each phase.
func (l *lab) undisturbed(ctx context.Context, ranks int) (points []map[string]int, err error) {
	s, err := l.site(l.undisturbedDir(ranks), fmt.Sprintf("ranks-%d", ranks), kind{})
	if err != nil {
		return nil, err
	}
	defer s.killAll()
	c, err := s.toTheEnd(ctx, ranks)
	if err != nil {
		return nil, err
	}
	if err := s.checkRows(ranks); err != nil {
		return nil, err
	}
	for _, m := range c.members {
		points = append(points, m.director.points)
	}
	for _, moment := range moments {
		for _, phase := range moment.phases {
			if points[0][phase] == 0 {
				return nil, fmt.Errorf("rank 0 never reaches %s", phase)
			}
		}
	}
	return points, nil
}

// toTheEnd starts ranks, which must come to the end of the run, and leave nothing.
func (s *site) toTheEnd(ctx context.Context, ranks int) (*crew, error) {
	c, err := s.crew(ranks, false)
	if err != nil {
		return nil, err
	}
	if err = c.start(-1, nil, nil); err == nil {
		err = c.wait(ctx, hostLimit)
	}
	if err = errors.Join(err, c.close()); err != nil {
		return nil, err
	}
	for rank, m := range c.members {
		if !m.exited(0) {
			return nil, m.unexpected(rank)
		}
	}
	if err := errors.Join(c.nothingLeft(), s.clean(), s.reportIsDone(roundSteps)); err != nil {
		return nil, err
	}
	return c, nil
}

// playRound disturbs a run, starts the ranks again, and compares.
func (l *lab) playRound(ctx context.Context, r *round) (timings, error) {
	s, err := l.site(l.roundDir(r), fmt.Sprintf("round-%d-%d", r.seed, r.number), kind{})
	if err != nil {
		return nil, err
	}
	defer s.killAll()
	found, err := s.disturb(ctx, r)
	if err != nil {
		return found, err
	}
	if !r.stays() {
		if _, err := s.toTheEnd(ctx, r.again); err != nil {
			return found, fmt.Errorf("started again: %w", err)
		}
	}
	if r.again != r.ranks {
		err = nearly(l.undisturbedDir(r.ranks), s.dir)
	} else {
		err = errors.Join(l.same(s, r), s.checkRows(r.ranks))
	}
	if err != nil {
		return found, err
	}
	return found, os.RemoveAll(s.dir)
}

// same compares every bit with the undisturbed run.
func (l *lab) same(s *site, r *round) error {
	got, err := s.files()
	if err != nil {
		return err
	}
	want, err := (&site{dir: l.undisturbedDir(r.ranks)}).files()
	if err != nil {
		return err
	}
	if r.stays() {
		return got.compare(want)
	}
	// A run that ends saves a checkpoint, and older ones go earlier.
	got, want = got.lastCheckpoint(roundSteps), want.lastCheckpoint(roundSteps)
	report, err := s.report()
	if err != nil {
		return err
	}
	return errors.Join(takeRanks(got, report.ResumedAt < report.Steps), takeRanks(want, true), got.compare(want))
}

// disturb makes the run of a round up to its end, and checks how the ranks have ended.
func (s *site) disturb(ctx context.Context, r *round) (timings, error) {
	var flags []string
	if r.network() {
		flags = []string{"--rank-timeout", fmt.Sprint(silence.Seconds())}
	}
	c, err := s.crew(r.ranks, r.network(), flags...)
	if err != nil {
		return nil, err
	}
	var at time.Time
	if r.fault == unjoined {
		err = c.start(-1, nil, nil)
		time.Sleep(r.delay)
		at = time.Now()
		c.act(r)
		time.Sleep(200 * time.Millisecond) // a launcher ends the others
		c.signal(syscall.SIGTERM, c.all()...)
	} else {
		err = c.start(r.watch, &r.injection, func() { c.act(r) })
	}
	err = errors.Join(err, c.wait(ctx, hostLimit))
	if err = errors.Join(err, c.close()); err != nil {
		return nil, err
	}
	if r.fault != unjoined {
		at = c.members[r.watch].director.injected
	}
	if at.IsZero() {
		return nil, errors.New("the run never reached the phase of the fault")
	}
	if err := c.nothingLeft(); err != nil {
		return nil, err
	}
	return c.judge(r, at)
}

// act injects the fault of a round, unless it is a signal for a plugin.
func (c *crew) act(r *round) {
	var proxies []*proxy
	for rank, p := range c.proxies {
		if p != nil && (r.victim == 0 || r.victim == rank) {
			proxies = append(proxies, p)
		}
	}
	switch r.fault {
	case killed, leadKilled, unjoined:
		c.signal(syscall.SIGKILL, r.victim)
	case terminated:
		c.signal(syscall.SIGTERM, r.victim)
	case allEnded:
		c.signal(syscall.SIGTERM, c.all()...)
	case paused:
		c.signal(syscall.SIGSTOP, r.victim)
		time.Sleep(r.stop)
		c.signal(syscall.SIGCONT, r.victim)
	case dropped:
		for _, p := range proxies {
			p.drop()
		}
	case frozen, held:
		var release []func()
		for _, p := range proxies {
			release = append(release, p.hold(r.way))
		}
		if r.fault == held {
			time.Sleep(time.Second)
			for _, f := range release {
				f()
			}
		}
	}
}

// judge checks how the ranks have ended after a fault at a time.
func (c *crew) judge(r *round, at time.Time) (timings, error) {
	found := timings{}
	var errs []error
	var steps []int
	for rank, m := range c.members {
		n, err := c.madeSteps(rank)
		if err != nil {
			return nil, err
		}
		steps = append(steps, n)
		if err := r.expects(rank, n, m); err != nil {
			errs = append(errs, err)
		}
		if dies := r.kills() && rank == r.victim; dies || r.stays() {
			continue
		}
		limit := endLimit
		if r.fault == frozen {
			limit += silence
		} else if r.kills() {
			limit = afterDeath
		}
		took := m.end.Sub(at)
		if took > limit {
			errs = append(errs, fmt.Errorf("rank %d has ended %v after the fault", rank, took))
		}
		found[r.fault+": ended"] = append(found[r.fault+": ended"], took)
		if rank > 0 || m.told.IsZero() {
			continue
		}
		told := m.told.Sub(at)
		if r.kills() && told > noticeLimit {
			errs = append(errs, fmt.Errorf("rank %d has noticed %v after the fault", rank, told))
		}
		found[r.fault+": noticed by rank 0"] = append(found[r.fault+": noticed by rank 0"], told)
	}
	together := r.fault == terminated || r.fault == allEnded
	if together && r.moment != "the start" && slices.Max(steps) != slices.Min(steps) {
		errs = append(errs, fmt.Errorf("the ranks have stopped after the steps %v", steps))
	}
	if n := steps[0]; together && n > 0 {
		_, err := os.Stat(c.path(fmt.Sprintf("run/checkpoints/step-%06d", n)))
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}
