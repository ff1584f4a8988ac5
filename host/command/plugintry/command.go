package plugintry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/overwrite"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Options are the arguments of `xtts-host plugins try`.
type Options struct {
	Stage     string // "stage" or "plugin/stage"
	Clip, Out string // files
	Count     int    // epochs to try
	Seed      int64
	Values    map[string]any // of the stage's configuration
	Plugins   string
	Graph     string
	CacheDir  string
	ORTLib    string
}

// Command sends the clip through the stage, once for each epoch, writes the results, and describes them on out.
func Command(ctx context.Context, out io.Writer, o Options) error {
	cache, err := config.CacheFolder(o.CacheDir)
	if err != nil {
		return exit.Refused(err)
	}
	bundle, err := ortgraphs.Open(o.Graph, cache)
	if err != nil {
		return exit.Refused(err)
	}
	entries, err := catalog.Scan(o.Plugins)
	if err != nil {
		return exit.Refused(err)
	}
	w, err := find(o.Stage, bundle.Manifest, entries, o.Values)
	if err != nil {
		return exit.Refused(err)
	}
	chosen, err := w.choose(strings.ToLower(filepath.Ext(o.Out)))
	if err != nil {
		return exit.Refused(err)
	}
	clip, wave, err := read(o.Clip, bundle.Manifest.Features.SampleRate)
	if err != nil {
		if file, ok := errors.AsType[*fs.PathError](err); ok {
			err = file.Err // the path is in the message
		}
		return exit.Refused(fmt.Errorf("--clip %s: %w", o.Clip, err))
	}
	t, err := open(ctx, w, bundle, o, clip)
	if err != nil {
		return exit.Refused(err)
	}
	defer t.close()
	if err := checkNames(o, chosen); err != nil {
		return exit.Refused(err)
	}
	for epoch := range o.Count {
		if err := t.run(ctx, epoch, wave); err != nil {
			return err
		}
		for _, s := range chosen {
			text, err := t.write(s, name(o, epoch, s, len(chosen) > 1), wave)
			if err != nil {
				return err
			}
			visible.Fprintf(out, "%s, epoch %d: %s\n", w.target.Name, epoch+1, text)
		}
	}
	return nil
}

// checkNames refuses to write over the clip.
func checkNames(o Options, chosen []shown) error {
	var files []overwrite.Place
	for epoch := range o.Count {
		for _, s := range chosen {
			files = append(files, overwrite.Place{Flag: "--out", Path: name(o, epoch, s, len(chosen) > 1)})
		}
	}
	return overwrite.Check(files, []overwrite.Place{{Flag: "--clip", Path: o.Clip}})
}

// name is the file of one epoch and output.
func name(o Options, epoch int, s shown, several bool) string {
	ending := filepath.Ext(o.Out)
	stem := strings.TrimSuffix(o.Out, ending)
	if several {
		stem += "-" + s.port
	}
	if o.Count > 1 {
		stem += fmt.Sprintf("-%d", epoch+1)
	}
	return stem + ending
}

// longest limits the length of a clip, in seconds: a clip is held in memory whole, and its header says how long it is.
const longest = 600

// read decodes a clip.
func read(path string, rate int) (*dataset.Row, []float32, error) {
	clip, err := dataset.OpenClip(path, rate)
	if err != nil {
		return nil, nil, err
	}
	if seconds := int(clip.Samples) / rate; seconds >= longest {
		return nil, nil, hint.Errorf("cut out a part, such as with ffmpeg -t 10",
			"%d s long, and only clips shorter than %d s are tried", seconds, longest)
	}
	wave, flaw, err := dataset.NewDecoder(rate).Clip(nil, clip)
	if err == nil && flaw != "" {
		err = errors.New(flaw)
	}
	return clip, wave, err
}

// trial has the processes of the way to a stage.
type trial struct {
	*batch.Trial
	way    *way
	rate   int
	frame  float64 // seconds
	ring   *ring.Ring
	layout ring.Layout
	pools  []*supervise.Pool
}

func open(ctx context.Context, w *way, bundle *ortgraphs.Bundle, o Options, clip *dataset.Row) (_ *trial, err error) {
	room := int(math.Ceil(float64(clip.Samples) * w.resolved.MaxGrowth))
	bucket := bundle.Manifest.Fit(manifest.Bucket{manifest.SymbolWav: room, manifest.SymbolText: 1})
	for _, spec := range dataset.Specs() { // every waveform is the clip
		if spec.DType == manifest.F32 {
			bucket[spec.Shape[1].Symbol] = room
		}
	}
	layouts, err := batch.Layouts([]manifest.Bucket{bucket}, 1, w.inputs, w.resolved.Intermediates)
	if err != nil {
		return nil, err
	}
	library, err := ort.Find(ort.Options{Library: o.ORTLib})
	if err != nil {
		library = "" // most stages need none; one that does says so
	}
	f := bundle.Manifest.Features
	t := &trial{way: w, layout: layouts[0], rate: f.SampleRate, frame: float64(f.HopLength) / float64(f.SampleRate)}
	if t.ring, err = ring.Create(1, t.layout.Size); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	log := slog.New(slog.DiscardHandler)
	for i, entry := range w.resolved.Plugins {
		request, err := batch.ConfigureRequest(bundle, w.resolved, i, layouts)
		if err != nil {
			return nil, err
		}
		pool, err := supervise.NewPool(ctx,
			supervise.Config{Plugin: entry, Ring: t.ring, Configure: request, ORTLibrary: library, Logger: log})
		if err != nil {
			return nil, err
		}
		t.pools = append(t.pools, pool)
	}
	t.Trial = batch.NewTrial(batch.TrialConfig{
		Ring: t.ring, Layouts: layouts, BatchSize: 1, Stages: w.resolved, Pools: t.pools, Clips: []string{clip.ID},
		Seed: o.Seed, Contract: f, Log: log,
	})
	return t, nil
}

func (t *trial) close() {
	for _, p := range t.pools {
		p.Close()
	}
	t.ring.Close()
}

// run sends the clip through all stages, with the random draws of an epoch.
func (t *trial) run(ctx context.Context, epoch int, wave []float32) error {
	tried, err := t.Run(ctx, &pipeline.Batch{Epoch: epoch, Rows: []int32{0}}, false,
		func(slot []byte) { t.fill(slot, wave) })
	if err != nil {
		return err
	}
	for _, r := range tried.Rejected {
		return errors.New("the clip is rejected: " + r.Reason)
	}
	return nil
}

// fill writes the clip to every waveform of the data set. Texts are one token, numbers are 0.
func (t *trial) fill(slot []byte, wave []float32) {
	specs := dataset.Specs()
	for _, tensor := range t.layout.Tensors {
		clear(tensor.In(slot))
	}
	for _, spec := range t.way.resolved.Dataset {
		n := uint32(1)
		if spec.DType == manifest.F32 {
			n = uint32(len(wave))
			putFloats(t.layout.View(slot, spec.Name), wave)
		}
		if lengths := t.layout.View(slot, specs[spec.Name].Lengths); lengths != nil {
			binary.LittleEndian.PutUint32(lengths, n)
		}
	}
}

func putFloats(view []byte, values []float32) {
	for i, v := range values {
		binary.LittleEndian.PutUint32(view[4*i:], math.Float32bits(v))
	}
}

// result returns the valid part of an output, row after row, and its number of columns.
func (t *trial) result(s shown) (values []float32, columns int) {
	tensor, _ := t.layout.Find(s.tensor)
	slot := t.ring.Slot(0)
	columns = 1
	if len(tensor.Shape) == 3 {
		columns = tensor.Shape[2]
	}
	n := int(binary.LittleEndian.Uint32(t.layout.View(slot, s.lengths)))
	for i := range n * columns {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(tensor.In(slot)[4*i:])))
	}
	return values, columns
}

// write writes an output to a file and describes it.
func (t *trial) write(s shown, file string, before []float32) (string, error) {
	values, columns := t.result(s)
	if len(values) == 0 {
		return "", fmt.Errorf("stage %s left nothing of the clip", t.way.target.Name)
	}
	if s.sound {
		return writeSound(file, before, values, t.rate)
	}
	return writePicture(file, s.port, values, columns, t.frame)
}
