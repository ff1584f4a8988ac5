package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Buckets are the sizes that batches are padded to.
type Buckets struct {
	Sizes []manifest.Bucket // ascending
	// Computed identifies buckets that are not the bundle's: what was asked for, "=", and the sizes of each, without
	// the one for the validation list. A checkpoint has it among its hashes, and a run that continues takes the buckets
	// from there.
	Computed string
	perBatch bool // another batch size would have others
}

// bucketsHash is the name of Buckets.Computed among the hashes of a checkpoint.
const bucketsHash = "buckets"

// settleBuckets computes the buckets from the data, or takes those of the checkpoint that the run continues from,
// unless they are the bundle's.
func (d *Draft) settleBuckets() error {
	asked, bundle, recorded := d.Config.Buckets, d.Bundle.Manifest, d.recordedBuckets()
	// the run is older than computed buckets
	before := d.Config.Resume != "" && recorded == "" && !d.set.Given("buckets")
	switch {
	case asked.Bundle, before, bundle.Dynamic == nil && asked.Auto() && asked.Count == 0:
		return nil
	case bundle.Dynamic == nil:
		return hint.Errorf("leave --buckets out, or export the bundle with dynamic lengths (docs/bundle.md)",
			"--buckets %s: the graphs of %s are made for the bundle's own buckets", &asked, bundle.Name)
	}
	spec := asked.String() + "="
	sizes, ok, err := parseSizes(recorded, spec, bundle)
	if err != nil {
		return fmt.Errorf("%s %s: %w", d.set.ResumeFlag, d.Config.Resume, err)
	}
	all, sizes, err := computeBuckets(&d.Plan, d.Config.BatchSize, sizes)
	if err != nil {
		return err
	}
	d.Buckets = Buckets{
		Sizes: all, Computed: spec + sizesText(sizes, bundle), perBatch: !ok && asked.Auto() && asked.Count == 0,
	}
	return nil
}

// computeBuckets returns the buckets for batches of so many rows, and those of them that training has without the
// validation list. recorded is what a checkpoint has; without it they are computed.
func computeBuckets(p *Plan, rows int, recorded []manifest.Bucket) (all, training []manifest.Bucket, err error) {
	cfg, err := bucketConfig(p, rows)
	if err != nil {
		return nil, nil, err
	}
	if training = recorded; training == nil {
		training = dataset.Buckets(p.Data.Train.Index.Rows, cfg)
	}
	if training == nil { // the plan refuses data without a clip that fits
		training = []manifest.Bucket{p.Bundle.Manifest.Fit(p.Bundle.Manifest.Dynamic)}
	}
	all = training
	if p.Data.Val != nil {
		all = dataset.Extend(training, p.Data.Val.Index.Rows, cfg)
	}
	if p.Config.StaticShapes { // then training, too, has the bucket of the validation list
		all = all[len(all)-1:]
		training = all
	}
	return all, training, nil
}

// recordedBuckets returns the buckets of the checkpoint that the run continues from, or "".
func (d *Draft) recordedBuckets() string {
	if d.Config.Resume == "" || d.openResumed() != nil {
		return "" // FindStart says why it cannot be opened
	}
	return d.Start.Resumed.State.Hashes[bucketsHash]
}

// bucketConfig says how the buckets for batches of so many rows are computed.
func bucketConfig(p *Plan, rows int) (dataset.BucketConfig, error) {
	bundle, asked := p.Bundle.Manifest, p.Config.Buckets
	longest, f := bundle.Dynamic[manifest.SymbolWav], bundle.Features
	cfg := dataset.BucketConfig{
		Bundle: bundle, BatchSize: p.World.BatchSize(rows), MaxGrowth: p.Stages.Resolved.MaxGrowth,
		Columns: p.Data.Train.Index.Columns, Count: asked.Count,
	}
	for _, seconds := range asked.Seconds {
		if most := bundle.LongestClip(); seconds > most {
			return cfg, hint.Errorf(fmt.Sprintf("give lengths of up to %.2fs, or auto", most),
				"--buckets %s: %g s is longer than %s takes, %.2f s", &asked, seconds, bundle.Name, most)
		}
		hops := math.Ceil(seconds * float64(f.SampleRate) / float64(f.HopLength))
		cfg.Samples = append(cfg.Samples, min(int(hops)*f.HopLength, longest))
	}
	return cfg, nil
}

// sizesText writes computed buckets as samples/tokens, and the values of the bundle's other limited symbols.
func sizesText(sizes []manifest.Bucket, bundle *manifest.Bundle) string {
	var list []string
	for _, b := range sizes {
		text := fmt.Sprint(b[manifest.SymbolWav])
		for _, symbol := range recorded(bundle) {
			text += fmt.Sprintf("/%d", b[symbol])
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// recorded returns the symbols of a computed bucket's text after T_wav: T_text first, also if the bundle has none.
func recorded(bundle *manifest.Bundle) []string {
	others := slices.DeleteFunc(bundle.Limited(), func(s string) bool { return s == manifest.SymbolText })
	return append([]string{manifest.SymbolText}, others...)
}

// parseSizes reads what sizesText wrote after spec. It reports false for buckets of another spec.
func parseSizes(text, spec string, bundle *manifest.Bundle) ([]manifest.Bucket, bool, error) {
	text, ok := strings.CutPrefix(text, spec)
	if !ok {
		return nil, false, nil
	}
	symbols := append([]string{manifest.SymbolWav}, recorded(bundle)...)
	var sizes []manifest.Bucket
	for _, part := range strings.Fields(text) {
		numbers := strings.Split(part, "/")
		b, bad := manifest.Bucket{}, len(numbers) != len(symbols)
		for i := 0; i < len(symbols) && !bad; i++ {
			n, err := strconv.Atoi(numbers[i])
			bad = err != nil || n < 0 || i == 0 && (n < 1 || n > bundle.Dynamic[manifest.SymbolWav])
			b[symbols[i]] = n
		}
		if bad {
			return nil, false, fmt.Errorf("the checkpoint has a bucket %q", part)
		}
		sizes = append(sizes, bundle.Fit(b))
	}
	return sizes, len(sizes) > 0, nil
}
