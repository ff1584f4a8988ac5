package plugintry

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/choice"
	"github.com/xtts-host/xtts-host/host/data/datafolder"
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

// resolved is a way with what is needed to start its processes.
type resolved struct {
	Options
	cache  string
	bundle *ortgraphs.Bundle
	way    *way
}

// resolve finds the way to the stages. Its errors are refusals.
func resolve(o Options) (_ *resolved, err error) {
	defer func() { err = exit.Refused(err) }()
	r := &resolved{Options: o}
	if r.cache, err = config.CacheFolder(o.CacheDir); err != nil {
		return nil, err
	}
	if r.bundle, err = ortgraphs.Open(o.Graph, r.cache); err != nil {
		return nil, err
	}
	entries, err := o.entries()
	if err != nil {
		return nil, err
	}
	var given []manifest.StageInstance
	if o.Pipeline != "" {
		if given, err = config.PipelineOf(o.Pipeline); err != nil {
			return nil, err
		}
	}
	if r.way, err = find(o.Stages, given, r.bundle.Manifest, entries, o.Values, o.Data); err != nil {
		return nil, err
	}
	return r, nil
}

// Trial has the clip, and the processes of the way to the stages.
type Trial struct {
	features manifest.Features
	clip     string // its id
	wave     []float32
	way      *way
	seed     int64
	trial    *batch.Trial
	ring     *ring.Ring
	layout   ring.Layout
	pools    []*supervise.Pool
	done     []Done // of the batch that is under way
}

// Open reads the clip and starts the processes, for results in a folder. Its errors are refusals.
func Open(ctx context.Context, o Options) (*Trial, error) {
	r, err := resolve(o)
	if err != nil {
		return nil, err
	}
	if err := checkNames(o, r.way, nil); err != nil {
		return nil, err
	}
	return r.start(ctx)
}

// start reads the clip and starts the processes. Its errors are refusals.
func (r *resolved) start(ctx context.Context) (*Trial, error) {
	folders, err := datafolder.OpenAll(ctx, r.way.resolved.Instances, filepath.Join(r.cache, "index"), nil)
	if err != nil {
		return nil, exit.Refused(err)
	}
	for _, f := range folders {
		for _, left := range f.LeftOut {
			r.log().With("plugin", "data folder "+f.Title).Warn("left out: " + left.String())
		}
	}
	features := r.bundle.Manifest.Features
	clip, wave, err := read(r.Clip, features.SampleRate)
	if err != nil {
		if file, ok := errors.AsType[*fs.PathError](err); ok {
			err = file.Err // the path is in the message
		}
		return nil, exit.Refused(fmt.Errorf("--clip %s: %w", r.Clip, err))
	}
	t := &Trial{way: r.way, features: features, clip: clip.ID, wave: wave, seed: r.Seed}
	if err := t.start(ctx, r.bundle, r.Options); err != nil {
		t.Close()
		return nil, exit.Refused(err)
	}
	return t, nil
}

// bucketOf returns a bucket in which every waveform has so many samples. The bundle does not say what else counts parts
// of the reference, such as the frames of its spectrogram: all other sizes grow as the reference does.
func bucketOf(bundle *manifest.Bundle, room int) manifest.Bucket {
	bucket := bundle.Fit(manifest.Bucket{manifest.SymbolWav: room, manifest.SymbolText: 1})
	grow := 1.0
	for _, spec := range dataset.Specs() {
		if symbol := spec.Shape[len(spec.Shape)-1].Symbol; spec.DType == manifest.F32 && symbol != manifest.SymbolWav {
			if usual := bundle.Buckets[0][symbol]; usual > 0 {
				grow = max(grow, float64(room)/float64(usual))
			}
			bucket[symbol] = room
		}
	}
	for symbol, n := range bucket {
		if n == bundle.Buckets[0][symbol] && n < room {
			bucket[symbol] = int(math.Ceil(grow * float64(n)))
		}
	}
	return bucket
}

// start starts the processes.
func (t *Trial) start(ctx context.Context, bundle *ortgraphs.Bundle, o Options) error {
	w := t.way
	room := int(math.Ceil(float64(len(t.wave)) * w.resolved.MaxGrowth))
	buckets := []manifest.Bucket{bucketOf(bundle.Manifest, room)}
	layouts, err := batch.Layouts(buckets, 1, w.inputs, w.resolved.Intermediates)
	if err != nil {
		return err
	}
	library, err := ort.Find(ort.Options{Library: o.ORTLib})
	if err != nil {
		library = "" // most stages need none; one that does says so
	}
	t.layout = layouts[0]
	if t.ring, err = ring.Create(1, t.layout.Size); err != nil {
		return err
	}
	log := o.log()
	for i, entry := range w.resolved.Plugins {
		request, err := batch.ConfigureRequest(bundle, w.resolved, i, layouts)
		if err != nil {
			return err
		}
		pool, err := supervise.NewPool(ctx, supervise.Config{
			Plugin: entry, Ring: t.ring, Configure: request, ORTLibrary: library, Logger: log, Debug: o.Debug,
			Sandbox:      o.Sandbox,
			StartTimeout: o.StartTimeout, ConfigureTimeout: o.StartTimeout, CallTimeout: o.Timeout,
		})
		if err != nil {
			return err
		}
		t.pools = append(t.pools, pool)
	}
	t.trial = batch.NewTrial(batch.TrialConfig{
		Ring: t.ring, Layouts: layouts, BatchSize: 1, Stages: w.resolved, Pools: t.pools, Clips: []string{t.clip},
		Samples: []int{len(t.wave)}, Seed: o.Seed, Contract: t.features, Log: log, After: t.after,
	})
	return nil
}

// Close ends the processes.
func (t *Trial) Close() {
	for _, p := range t.pools {
		p.Close()
	}
	if t.ring != nil {
		t.ring.Close()
	}
}

// Done is what a stage has made of the clip.
type Done struct {
	Outcome
	outputs []output
}

// output is an output of a stage, row after row, and what the same tensor had before: the clip, or nothing.
type output struct {
	shown
	values  []float32
	before  []float32
	columns int
}

// Run sends the clip through all stages, with the draws of an epoch and a step, which are counted from 1.
func (t *Trial) Run(ctx context.Context, epoch, step int) ([]Done, error) {
	t.done = nil
	tried, err := t.trial.Run(ctx, &pipeline.Batch{Epoch: epoch - 1, Step: int64(step - 1), Rows: []int32{0}}, true,
		t.fill)
	if p, ok := errors.AsType[*supervise.PluginError](err); ok {
		return nil, p // without the words for a run, which builds the batch again
	}
	if err != nil {
		return nil, err
	}
	for _, r := range tried.Rejected {
		return nil, fmt.Errorf("stage %s rejects the clip: %s", t.way.resolved.Instances[len(t.done)].Name, r.Reason)
	}
	for i := range t.done {
		d := &t.done[i]
		key := dataset.RowKey(t.seed, epoch-1, t.clip, d.Name)
		d.Key = hex.EncodeToString(key[:])
		d.Chosen = t.way.chosen(d.Name, choice.Row{Seed: t.seed, Epoch: epoch - 1, Step: int64(step - 1), ID: t.clip})
		if draws := tried.Draws[d.Name]; len(draws) > 0 {
			d.Draws = draws[0]
		}
		if len(d.outputs) > 0 && len(d.outputs[0].values) == 0 {
			return nil, fmt.Errorf("stage %s left nothing of the clip", d.Name)
		}
	}
	return t.done, nil
}

// chosen reports whether a row gets an instance of the pipeline, nil if each row does.
func (w *way) chosen(name string, row choice.Row) *bool {
	at := slices.IndexFunc(w.asked, func(s manifest.Step) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	in := catalog.Instance{Name: name, P: w.asked[at].P, Group: w.asked[at].Group, Member: w.asked[at].Member}
	if !in.Chosen() {
		return nil
	}
	gets := row.Gets(&in)
	return &gets
}

// after keeps what an instance has written, before the next one changes it.
func (t *Trial) after(instance int, busy time.Duration) {
	in := t.way.resolved.Instances[instance]
	d := Done{Outcome: Outcome{
		Name: in.Name, Plugin: t.way.resolved.Plugins[in.Plugin].Name(), Stage: in.Stage.Name,
		Milliseconds: float64(busy) / float64(time.Millisecond),
	}}
	for _, s := range outputsOf(in) {
		o := output{shown: s}
		if s.sound {
			o.before = t.wave
		}
		for _, earlier := range t.done {
			for _, was := range earlier.outputs {
				if was.tensor == s.tensor {
					o.before = was.values
				}
			}
		}
		o.values, o.columns = t.result(s)
		d.outputs = append(d.outputs, o)
	}
	t.done = append(t.done, d)
}

// fill writes the clip to every waveform of the data set. Texts are one token, numbers are 0.
func (t *Trial) fill(slot []byte) {
	specs := dataset.Specs()
	for _, tensor := range t.layout.Tensors {
		clear(tensor.In(slot))
	}
	for _, spec := range t.way.resolved.Dataset {
		n := uint32(1)
		if spec.DType == manifest.F32 {
			n = uint32(len(t.wave))
			putFloats(t.layout.View(slot, spec.Name), t.wave)
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
func (t *Trial) result(s shown) (values []float32, columns int) {
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

// entries returns the plugins of Options.Plugins, in which Options.Plugin takes the place of the one with its id.
func (o Options) entries() ([]catalog.Entry, error) {
	if o.Plugin == "" {
		return catalog.Scan(o.Plugins)
	}
	own, err := catalog.Open(o.Plugin)
	if err != nil {
		return nil, err
	}
	if !own.Startable() {
		return nil, hint.Errorf(own.Hint, "plugin %s is %s: %s", own.Name(), own.State, own.Reason)
	}
	entries := []catalog.Entry{own}
	others, err := catalog.Scan(o.Plugins)
	if err != nil {
		return entries, nil // who needs more than this plugin is told that there is no other stage
	}
	for _, e := range others {
		if e.Name() != own.Name() && e.Dir != own.Dir {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
