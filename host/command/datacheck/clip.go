package datacheck

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/xtts-host/xtts-host/host/data/dataset"
)

// Rules for samples (docs/data-check.md).
const (
	fullScale  = 0.999 // of the samples that count as clipped
	clippedRun = 3     // clipped samples in a row
	quiet      = 0.01  // of the clip's peak, -40 dB: a frame below is silence
	frameTime  = 0.01  // seconds
)

// clip is what is measured of a row. A row that no bucket holds is not read, as in a run.
type clip struct {
	read    bool
	reason  string // why it cannot be used; then the rest is empty
	hash    [16]byte
	level   float64 // of the whole clip, RMS in dB of full scale
	clipped int     // samples in runs at full scale
	// Silence before and after speech, and the share of silent frames.
	leading, trailing float64 // seconds
	silent            float64
}

// readAll measures the rows that a plan has in its batches.
func readAll(
	ctx context.Context, ix *dataset.Index, plan *dataset.Plan, workers int, progress dataset.Progress,
) ([]clip, error) {
	clips := make([]clip, len(ix.Rows))
	var next atomic.Int64
	var mu sync.Mutex // guards done and the calls of progress
	done := 0
	all, ctx := errgroup.WithContext(ctx)
	for range min(workers, len(clips)) {
		all.Go(func() error {
			decoder := dataset.NewDecoder(ix.SampleRate)
			var samples []float32
			var array []byte
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(clips) {
					return nil
				}
				if plan.Bucket(int32(i)) >= 0 {
					var err error
					if samples, clips[i].reason, err = decoder.Clip(samples, &ix.Rows[i]); err != nil {
						return err
					}
					if clips[i].reason == "" {
						if array, clips[i].reason, err = ix.CheckArrays(array, &ix.Rows[i]); err != nil {
							return err
						}
					}
					if clips[i].reason == "" {
						clips[i].measure(samples, ix.SampleRate)
					}
				}
				mu.Lock()
				done++
				progress("clips of "+ix.List, done, len(clips))
				mu.Unlock()
			}
			return context.Cause(ctx)
		})
	}
	return clips, all.Wait()
}

// measure sets everything but the reason.
func (c *clip) measure(samples []float32, rate int) {
	c.read = true
	h := sha256.New()
	var energy, peak float64
	var bytes [4096]byte
	run, used := 0, 0
	for _, v := range samples {
		binary.LittleEndian.PutUint32(bytes[used:], math.Float32bits(v))
		if used += 4; used == len(bytes) {
			h.Write(bytes[:])
			used = 0
		}
		a := math.Abs(float64(v))
		energy += a * a
		peak = max(peak, a)
		if a < fullScale {
			run = 0
			continue
		}
		switch run++; {
		case run == clippedRun:
			c.clipped += clippedRun
		case run > clippedRun:
			c.clipped++
		}
	}
	h.Write(bytes[:used])
	copy(c.hash[:], h.Sum(nil))
	c.level = 10 * math.Log10(energy/float64(len(samples)))
	c.silence(samples, rate, peak*quiet)
}

// silence measures silent frames: no sample of one exceeds limit.
func (c *clip) silence(samples []float32, rate int, limit float64) {
	frame := max(1, int(frameTime*float64(rate)))
	frames, silent, first, last := 0, 0, -1, 0
	for at := 0; at < len(samples); at += frame {
		loud := false
		for _, v := range samples[at:min(at+frame, len(samples))] {
			if math.Abs(float64(v)) > limit {
				loud = true
				break
			}
		}
		if loud {
			if first < 0 {
				first = at
			}
			last = min(at+frame, len(samples))
		} else {
			silent++
		}
		frames++
	}
	c.leading = float64(max(first, 0)) / float64(rate)
	c.trailing = float64(len(samples)-last) / float64(rate)
	c.silent = share(float64(silent), float64(frames))
}
