package prepare

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Result says what was prepared. Rows are those of clips in stages: two stages have two rows of each clip.
type Result struct {
	List      string     `json:"list"`
	Shard     int        `json:"shard"` // from 1 on
	Shards    int        `json:"shards"`
	Stages    []string   `json:"stages"`
	Folder    string     `json:"folder"`
	Clips     int        `json:"clips"` // of the shard
	Rows      int64      `json:"rows"`
	Computed  int64      `json:"computed"`
	Found     int64      `json:"found"` // rows that were there already
	Written   int64      `json:"written_bytes"`
	Bytes     int64      `json:"folder_bytes"` // as far as this process knows
	Seconds   float64    `json:"seconds"`
	Unusable  []Unusable `json:"unusable"` // clips: of the whole list if it shows that, else of the shard
	Completed bool       `json:"completed"`
}

// Unusable is a clip that cannot be used.
type Unusable struct {
	Line   int    `json:"line"`
	ID     string `json:"id"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func row(out io.Writer, label, format string, args ...any) {
	visible.Fprintf(out, "%s", fmt.Sprintf("%-13s", label))
	visible.Fprintf(out, format+"\n", args...)
}

// describe says what is prepared.
func (w *work) describe(out io.Writer) {
	ix, used := w.split.Index, &w.plan.Data.Usage.Train
	row(out, "list", "%s: %s", filepath.Join(ix.Dir, ix.List), used)
	for _, line := range used.Lines() {
		row(out, "", "%s", line)
	}
	for _, line := range w.split.Unusable(ix.Rejected) {
		row(out, "", "%s", line)
	}
	row(out, "shard", "%s: %s", w.Shard, units.Count(w.split.Plan.Rows(), "clip"))
	row(out, "stages", "%s", strings.Join(w.kept, ", "))
	if needed := w.needed(); len(needed) > 0 {
		row(out, "", "also computed, because these need it: %s", strings.Join(needed, ", "))
	}
}

// needed are the stages that those of --stages need.
func (w *work) needed() []string {
	return slices.DeleteFunc(w.plan.Stages.Resolved.Names(), func(name string) bool {
		return slices.Contains(w.kept, name)
	})
}

// size writes a number of bytes, also a small one.
func size(n int64) string {
	if n < 1<<30 {
		return units.Mebibytes(float64(n)) + " MiB"
	}
	return units.Size(n)
}

// stages returns the figures of the stages that were asked for.
func (w *work) stages(c *report.FeatureCache) []report.CachedStage {
	return slices.DeleteFunc(slices.Clone(c.Stages), func(s report.CachedStage) bool {
		return !slices.Contains(w.kept, s.Name)
	})
}

// result returns what was prepared in that time.
func (w *work) result(took time.Duration) *Result {
	ix := w.split.Index
	r := &Result{
		List: filepath.Join(ix.Dir, ix.List), Shard: w.Shard.Index + 1, Shards: w.Shard.Of, Stages: w.kept,
		Folder: w.Out, Clips: w.split.Plan.Rows(), Seconds: took.Seconds(), Unusable: []Unusable{},
		Written: w.Machine.Features.Written(), Completed: w.done == w.split.Plan.Rows(),
	}
	for _, bad := range slices.Concat(ix.Rejected, w.unusable) {
		r.Unusable = append(r.Unusable, Unusable{bad.Line, bad.ID, bad.Path, bad.Reason})
	}
	if w.cache == nil { // nothing was begun
		return r
	}
	r.Bytes = w.cache.Bytes
	for _, s := range w.cache.Stages { // also those that are needed: a run finds their rows, too
		r.Computed, r.Found = r.Computed+s.Stored, r.Found+s.Hits
	}
	r.Rows = r.Computed + r.Found
	return r
}

// sumUp says what was prepared.
func (w *work) sumUp(out io.Writer, r *Result) {
	if n := len(w.unusable); n > 0 {
		row(out, "left out", "%s: cannot be used", units.Count(n, "clip"))
		for _, line := range w.split.Unusable(w.unusable) {
			row(out, "", "%s", line)
		}
	}
	label := "prepared"
	if !r.Completed {
		label = "not complete"
		row(out, label, "%s of %s clips; the same command again goes on from there", units.Thousands(w.done),
			units.Thousands(r.Clips))
		label = ""
	}
	took := time.Duration(r.Seconds * float64(time.Second))
	row(out, label, "%s: %s computed, %s there already", units.Count(r.Rows, "row"), units.Thousands(r.Computed),
		units.Thousands(r.Found))
	written := "nothing"
	if r.Written > 0 {
		written = size(r.Written)
	}
	row(out, "", "%s written in %s, %s rows/s", written, units.Duration(took),
		units.Rate(float64(r.Rows)/max(r.Seconds, 1e-3)))
	row(out, "folder", "%s: %s", r.Folder, size(r.Bytes))
}
