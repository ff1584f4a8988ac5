package plugintest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

const (
	rows  = 5 // of a batch
	slots = 3
	empty = -1 // the clip of an empty row
	seed  = 1
)

// mixed is a batch with a full row, an empty one, the shortest one and odd lengths.
var mixed = []int32{0, empty, 1, 2, 3}

// full is a batch of whole rows, for figures.
var full = []int32{0, 0, 0, 0, 0}

// clipNames are the ids of the clips, which their random draws depend on.
var clipNames = []string{"clip-0", "clip-1", "clip-2", "clip-3"}

// clipSamples are the lengths of the clips before other stages would have changed them.
var clipSamples = []int{40000, 30000, 20001, 10000}

// subject is a stage under test.
type subject struct {
	cfg    *Config
	stage  manifest.Stage
	noise  *noise
	stages *catalog.Resolved

	verified, plain *session
	want            map[int][][]byte // the outputs of the mixed batch, by bucket and row
	replaced        uint64           // processes that were, so far
	changing        bool             // the same batch did not give the same bits
	perClip         []time.Duration
	peak            int64
	temp            *files.Path // a data folder of its own, or nil
	tempLock        io.Closer
}

func newSubject(c *Config, s manifest.Stage) (*subject, error) {
	n, err := newNoise(s, c.Bundle)
	if err != nil {
		return nil, err
	}
	in := catalog.Instance{
		Name: "test", Stage: s, Config: map[string]any{}, Inputs: map[string]string{}, Outputs: map[string]string{},
	}
	for key, value := range c.Values {
		if has(s, key) {
			in.Config[key] = value
		}
	}
	for _, p := range s.Inputs {
		in.Inputs[p.Name] = tensorName(p.Name)
	}
	for _, p := range s.Outputs {
		in.Outputs[p.Name] = tensorName(p.Name)
	}
	return &subject{
		cfg: c, stage: s, noise: n, want: map[int][][]byte{},
		stages: &catalog.Resolved{Instances: []catalog.Instance{in}, Plugins: []catalog.Entry{c.Plugin}},
	}, nil
}

func (t *subject) close() {
	for _, s := range []*session{t.verified, t.plain} {
		if s != nil {
			s.close()
		}
	}
}

// end closes the subject and removes what it has made.
func (t *subject) end() {
	t.close()
	if t.temp != nil {
		t.temp.RemoveAll() // what remains is in the folder for temporary files
		t.tempLock.Close()
	}
}

// restarted returns why a process was last restarted, or nil if none was since the last time.
func (t *subject) restarted() (cause error) {
	var restarts uint64
	for _, s := range []*session{t.verified, t.plain} {
		if s != nil {
			stats := s.pool.Stats()
			restarts, cause = restarts+stats.Restarts, cmp.Or(stats.Cause, cause)
		}
	}
	if restarts == t.replaced {
		return nil
	}
	t.replaced = restarts
	return cause
}

// session is a pool of processes with a ring of its own.
type session struct {
	t       *subject
	ring    *ring.Ring
	pool    *supervise.Pool
	trial   *batch.Trial
	epoch   int                           // of the row keys
	report  bool                          // ask for what the stage draws
	onBatch atomic.Pointer[func(pid int)] // called when a call has been sent
	close   func()
}

// open starts processes, with the proof of --verify-plugins or without.
func (t *subject) open(ctx context.Context, processes int, verify bool) (*session, error) {
	if err := manifest.ValidateConfig(t.stage, t.stages.Instances[0].Config); err != nil {
		return nil, err
	}
	request, err := batch.ConfigureRequest(t.cfg.Bundle, t.stages, 0, t.noise.layouts)
	if err != nil {
		return nil, err
	}
	s := &session{t: t}
	if s.ring, err = ring.Create(slots, t.noise.slotSize()); err != nil {
		return nil, err
	}
	s.pool, err = supervise.NewPool(ctx, supervise.Config{
		Plugin: t.cfg.Plugin, Workers: processes, Ring: s.ring, Configure: request, ORTLibrary: t.cfg.ORTLibrary,
		Logger: t.cfg.Log, Pause: verify, Sandbox: t.cfg.Sandbox,
		StartTimeout: t.cfg.Deadline, CallTimeout: t.cfg.Deadline,
		DrainTimeout: t.cfg.Patience, MemoryInterval: 50 * time.Millisecond,
		Reached: func(phase supervise.Phase, _ supervise.ProcessID, pid int) {
			if do := s.onBatch.Load(); do != nil && phase == supervise.Batch {
				(*do)(pid)
			}
		},
	})
	if err != nil {
		s.ring.Close()
		return nil, err
	}
	s.close = sync.OnceFunc(func() {
		t.peak = max(t.peak, s.pool.Stats().PeakMemory)
		s.pool.Close()
		s.ring.Close()
	})
	s.trial = batch.NewTrial(batch.TrialConfig{
		Ring: s.ring, Layouts: t.noise.layouts, BatchSize: rows, Stages: t.stages, Pools: []*supervise.Pool{s.pool},
		Clips: clipNames, Samples: clipSamples, Seed: seed, Verify: verify,
		Contract: t.cfg.Bundle.Manifest.Features, Log: t.cfg.Log,
	})
	return s, nil
}

// lost says what happened to the process, and why it was restarted.
func (s *session) lost(what string) error {
	if cause := s.pool.Stats().Cause; cause != nil {
		return fmt.Errorf("%s: %w", what, cause)
	}
	return errors.New(what)
}

// rejected is the error for a row that the stage rejects.
type rejected string

func (r rejected) Error() string { return string(r) }

// run sends a batch of clips, and returns the bytes of all outputs by row.
func (s *session) run(ctx context.Context, slot, bucket int, clips []int32) ([][]byte, error) {
	b := &pipeline.Batch{Epoch: s.epoch, Slot: slot, Bucket: bucket, Rows: slices.Clone(clips)}
	tried, err := s.trial.Run(ctx, b, s.report, func(memory []byte) { s.t.noise.fill(memory, bucket, clips) })
	if err != nil {
		return nil, err
	}
	for _, r := range tried.Rejected {
		return nil, rejected(fmt.Sprintf("row %d, which is noise, was rejected: %s", r.Row, r.Reason))
	}
	if &clips[0] == &full[0] {
		s.t.perClip = append(s.t.perClip, tried.Busy/rows)
	}
	out := make([][]byte, rows)
	for _, p := range s.t.stage.Outputs {
		tensor, _ := s.t.noise.layouts[bucket].Find(tensorName(p.Name))
		for row := range out {
			out[row] = append(out[row], tensor.Row(s.ring.Slot(slot), row)...)
		}
	}
	return out, nil
}

// reference is the mixed batch of a bucket, computed once.
func (t *subject) reference(ctx context.Context, bucket int) ([][]byte, error) {
	if t.want[bucket] == nil {
		got, err := t.verified.run(ctx, 0, bucket, mixed)
		if err != nil {
			return nil, err
		}
		t.want[bucket] = got
	}
	return t.want[bucket], nil
}

// sameAs runs a batch with the clips of the mixed one in some order, and compares each row.
func (s *session) sameAs(ctx context.Context, slot, bucket int, clips []int32) error {
	want, err := s.t.reference(ctx, bucket)
	if err != nil {
		return err
	}
	got, err := s.run(ctx, slot, bucket, clips)
	if err != nil {
		return err
	}
	if !s.t.stage.Deterministic || s.t.changing {
		return nil
	}
	for row, clip := range clips {
		was := slices.Index(mixed, clip)
		if !slices.Equal(got[row], want[was]) {
			return fmt.Errorf("the outputs of one clip with one key differ: row %d of a batch, and row %d of the first",
				row, was)
		}
	}
	return nil
}

// figures returns the median time for a whole clip in milliseconds, the seconds of that clip, and the peak of memory.
func (t *subject) figures() (perClip, clipSeconds float64, peak int64) {
	t.close()
	if len(t.perClip) == 0 {
		return 0, 0, t.peak
	}
	slices.Sort(t.perClip)
	return t.perClip[len(t.perClip)/2].Seconds() * 1000, seconds[len(seconds)-1], t.peak
}
