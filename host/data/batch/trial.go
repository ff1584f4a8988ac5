package batch

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Trial sends batches of the caller's content to stage instances outside of a run, with the checks of a run.
type Trial struct {
	*common
	runners []*stageRunner
	after   func(instance int, busy time.Duration)
}

// TrialConfig has the parts of a Trial.
type TrialConfig struct {
	Ring      *ring.Ring
	Layouts   []ring.Layout // by bucket
	BatchSize int
	Stages    *catalog.Resolved
	Pools     []*supervise.Pool // by plugin of Stages
	Clips     []string          // ids of the rows that batches name
	Samples   []int             // of Clips, as stages are told; if it is nil, they are not told
	Seed      int64             // of the row keys
	Verify    bool              // as of Config
	Contract  manifest.Features // as of Config
	Log       *slog.Logger
	// After, if not nil, is called when an instance of Stages has finished a batch, before the next one gets it, with
	// its number and its time.
	After func(instance int, busy time.Duration)
}

// NewTrial returns a trial. A value that cannot be right is an error.
func NewTrial(c TrialConfig) *Trial {
	shared := &common{
		seed: c.Seed, ring: c.Ring, layouts: c.Layouts, guards: newGuards(c.Ring, c.Layouts),
		ranges: rangesOf(c.Stages.Instances, c.Contract), onRange: config.StopAtOnce,
		data: Data{Train: &Split{Index: new(dataset.Index)}}, crops: make([][]dataset.Crop, c.Ring.Slots()),
	}
	if c.Samples != nil {
		shared.origins = origins(c.Stages.Instances, c.Stages.Dataset)
	}
	shared.watch(c.Verify)
	t := &Trial{common: shared, after: c.After}
	t.Rename(c.Clips, c.Samples)
	for i, pool := range c.Pools {
		shared.guards.pools = append(shared.guards.pools, pool)
		shared.guards.names = append(shared.guards.names, c.Stages.Plugins[i].Name())
	}
	for _, in := range c.Stages.Instances {
		in.P, in.Group = nil, nil // what is tried is tried with every row
		t.runners = append(t.runners,
			newStageRunner(shared, c.Pools[in.Plugin], c.Stages.Plugins[in.Plugin].Name(), in, nil, c.BatchSize, c.Log))
	}
	return t
}

// Rename gives the clips that batches name other ids and numbers of samples, as for TrialConfig. No batch may be in a
// call.
func (t *Trial) Rename(clips []string, samples []int) {
	rows := make([]dataset.Row, len(clips))
	for i, id := range clips {
		rows[i].ID = id
		if samples != nil {
			rows[i].Samples = samples[i]
		}
	}
	t.data.Train.Index.Rows = rows
}

// Tried is what became of a batch.
type Tried struct {
	Rejected []pipeline.Rejected // the rows that the last instance rejected
	Busy     time.Duration       // of the last instance
	// Draws has for each instance that reported what it drew a JSON object by row of the batch, nil for a row without.
	// The text is the plugin's: show it by package visible.
	Draws map[string][]json.RawMessage
}

// Run fills the batch's slot by fill and sends it through all instances in their order. With report, it asks them for
// what they draw. Calls for different slots may overlap.
func (t *Trial) Run(
	ctx context.Context, b *pipeline.Batch, report bool, fill func(slot []byte),
) (tried Tried, err error) {
	t.proof.decode(b.Slot)
	t.guards.begin(b)
	t.seals.begin(b.Slot)
	fill(t.ring.Slot(b.Slot))
	t.crops[b.Slot] = t.crops[b.Slot][:0]
	for _, row := range b.Rows { // each row is its own reference
		crop := dataset.Crop{Row: row}
		if row >= 0 {
			crop.Length = t.data.Train.Index.Rows[row].Samples
		}
		t.crops[b.Slot] = append(t.crops[b.Slot], crop)
	}
	t.proof.decoded(b.Slot, b.Bucket)
	for i, r := range t.runners {
		a := &r.attempts[b.Slot]
		a.report, a.draws = report, nil
		tried.Rejected, tried.Busy, err = r.Process(ctx, b)
		if a.draws != nil {
			if tried.Draws == nil {
				tried.Draws = map[string][]json.RawMessage{}
			}
			tried.Draws[r.instance.Name] = a.draws
		}
		if err != nil || len(tried.Rejected) > 0 {
			return tried, err
		}
		if t.after != nil {
			t.after(i, tried.Busy)
		}
	}
	return tried, nil
}
