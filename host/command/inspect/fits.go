package inspect

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Cards are the sizes of cards, in GiB, for which Fits finds the largest batch.
var Cards = []int{6, 8, 12, 16, 24, 40, 48, 80, 141}

const (
	// usable is the part of a card that a run gets: the rest is for the driver, a desktop, and what the plan does not
	// know.
	usable = 0.95
	// deviceSlots is the number of batches on the device.
	deviceSlots = 3
	// libraries and graphNode are what CUDA, its libraries and ONNX Runtime take on an H200, and what each operator
	// takes in a CUDA graph. Each bucket has such a graph for each slot. They are from runs of three models
	// (docs/which-batch.md).
	libraries = 1052 << 20
	graphNode = 18 << 10
	// most is the largest batch that is planned.
	most = 1024
)

// FitReport is the output of `xtts-host graph fits --json`.
type FitReport struct {
	Bundle string `json:"bundle"` // its name
	// UsableShare is the part of a card that the plans use.
	UsableShare float64 `json:"usable_share"`
	Precisions  []Fit   `json:"precisions"`
}

// Fit is the planned memory of training in a precision, and the largest batches.
type Fit struct {
	Precision string `json:"precision"`
	// FixedBytes do not depend on the batch: weights, their bf16 copies, gradients and moments. LibraryBytes is what
	// CUDA, its libraries and the CUDA graphs of all buckets are expected to take.
	FixedBytes   int `json:"fixed_bytes"`
	LibraryBytes int `json:"library_bytes"`
	RowBytes     int `json:"row_bytes"` // of the inputs
	// Planned are whole plans, by number of rows.
	Planned []Planned `json:"planned"`
	// Largest is the number of rows that fit on each of Cards; 0 if not even one does.
	Largest []Largest `json:"largest"`
}

// Planned is the memory of batches of so many rows.
type Planned struct {
	Rows       int   `json:"rows"`
	SlotBytes  int   `json:"slot_bytes"`
	ArenaBytes int64 `json:"arena_bytes"`
	TotalBytes int64 `json:"total_bytes"`
}

// Largest is the largest batch on a card.
type Largest struct {
	CardGiB int `json:"card_gib"`
	Rows    int `json:"rows"`
}

// Fits plans the memory of a bundle on a GPU in each of its precisions, with the fused training graph and batches of
// the largest bucket, and prints the largest batch for cards of many sizes. It needs no GPU. asJSON writes JSON instead
// of text.
func Fits(out io.Writer, spec, cache string, asJSON bool) error {
	b, err := openBundle(spec, cache)
	if err != nil {
		return exit.Refused(err)
	}
	r := FitReport{Bundle: b.Manifest.Name, UsableShare: usable}
	for _, precision := range []manifest.DType{manifest.F32, manifest.BF16} {
		if _, ok := b.Manifest.TrainingGraph(b.Manifest.InTurn()[0].Name, precision); !ok {
			continue
		}
		f, err := fitOf(b, precision)
		if err != nil {
			return exit.Refused(err)
		}
		r.Precisions = append(r.Precisions, *f)
	}
	if asJSON {
		return report.JSON(out, r)
	}
	return printFits(out, b.Manifest, r.Precisions)
}

// fitOf plans batches of one row, two, four and so on, up to what no card holds, and those of the cards between them.
func fitOf(b *ortgraphs.Bundle, precision manifest.DType) (*Fit, error) {
	f := &Fit{Precision: string(precision), RowBytes: rowBytes(b)}
	m := b.Manifest
	for i, arena := range ortgraphs.NewArenas(m, b.Policy(precision)) {
		f.FixedBytes += arena.Memory(m.InTurn()[i].Optimizer, false, false).Total()
	}
	f.FixedBytes += ortgraphs.StateBytes(m.State, true)
	largest := int64(float64(Cards[len(Cards)-1]<<30) * usable)
	for rows := 1; rows <= most; rows *= 2 {
		p, err := f.plan(b, precision, rows)
		if err != nil {
			return nil, err
		}
		f.Planned = append(f.Planned, p)
		if p.TotalBytes > largest {
			break
		}
	}
	for i := range f.Planned { // LibraryBytes is that of the plan with the most kernels
		f.total(&f.Planned[i])
	}
	for _, card := range Cards {
		f.Largest = append(f.Largest, Largest{card, f.rows(int64(float64(card<<30) * usable))})
	}
	return f, nil
}

// Rows returns the largest batch that fits in a precision on a card with so many bytes, by the plan of Fits; 0 if none
// does.
func Rows(b *ortgraphs.Bundle, precision manifest.DType, card int64) (int, error) {
	f, err := fitOf(b, precision)
	if err != nil {
		return 0, err
	}
	return f.rows(int64(float64(card) * usable)), nil
}

// plan plans batches of so many rows of the largest bucket.
func (f *Fit) plan(b *ortgraphs.Bundle, precision manifest.DType, rows int) (p Planned, err error) {
	m := b.Manifest
	bucket := m.Buckets[len(m.Buckets)-1].Values(rows)
	p = Planned{Rows: rows, SlotBytes: deviceSlots * rows * f.RowBytes}
	operators := 0
	var training []*lifetime.Plan
	for _, player := range m.InTurn() {
		g, ok := m.TrainingGraph(player.Name, precision)
		if !ok {
			return p, fmt.Errorf("there is no training graph%s in %s", report.OfPlayer(player.Name), precision)
		}
		l, err := fusedLifetimes(b, g, bucket)
		if err != nil {
			return p, err
		}
		training = append(training, l)
		operators += operatorsOf(l)
	}
	before, err := evaluation(b, bucket, training)
	if err != nil {
		return p, err
	}
	for _, l := range training {
		p.ArenaBytes = max(p.ArenaBytes, lifetime.Arena(append(before, l)...))
	}
	f.LibraryBytes = max(f.LibraryBytes, libraries+operators*len(m.Buckets)*deviceSlots*graphNode)
	f.total(&p)
	return p, nil
}

func (f *Fit) total(p *Planned) {
	p.TotalBytes = int64(f.FixedBytes+f.LibraryBytes+p.SlotBytes) + p.ArenaBytes
}

// fusedLifetimes plans the tensors of a graph whose regions are kernels.
func fusedLifetimes(b *ortgraphs.Bundle, g manifest.Graph, bucket shapes.Sizes) (*lifetime.Plan, error) {
	p, err := fused.PlanOf(b.Model(g.File), bucket, fused.Form{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Path(g.File), err)
	}
	l, err := p.Lifetimes()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Path(g.File), err)
	}
	return l, nil
}

// evaluation returns the plan of the evaluation graph, which a run tries before it trains, in the same arena; none
// without such a graph. It is fused if it needs more memory as exported than training.
func evaluation(b *ortgraphs.Bundle, bucket shapes.Sizes, training []*lifetime.Plan) ([]*lifetime.Plan, error) {
	g, ok := b.Manifest.EvalGraph()
	if !ok {
		return nil, nil
	}
	r, err := shapes.Infer(b.Model(g.File), bucket)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Path(g.File), err)
	}
	l := lifetime.Of(r)
	if l.Exceeds(training...) {
		if fused, err := fusedLifetimes(b, g, bucket); err == nil { // else a run has it as exported, too
			l = fused
		}
	}
	return []*lifetime.Plan{l}, nil
}

// operatorsOf counts the nodes that compute.
func operatorsOf(l *lifetime.Plan) (count int) {
	for _, n := range l.Nodes {
		if !n.IsView() {
			count++
		}
	}
	return count
}

// rowBytes is the size of the inputs of a row of the largest bucket.
func rowBytes(b *ortgraphs.Bundle) (bytes int) {
	for _, c := range b.Inspect().Steps {
		if c.BatchSize == 1 {
			bytes = int(c.InputBytes)
		}
	}
	return bytes
}

// rows returns the largest batch that fits into a room, between two planned ones by a straight line.
func (f *Fit) rows(room int64) int {
	fits := 0
	for i, p := range f.Planned {
		if p.TotalBytes > room {
			if i > 0 {
				before := f.Planned[i-1]
				share := float64(room-before.TotalBytes) / float64(p.TotalBytes-before.TotalBytes)
				fits = before.Rows + int(share*float64(p.Rows-before.Rows))
			}
			return fits
		}
		fits = p.Rows
	}
	return fits
}

func printFits(out io.Writer, m *manifest.Bundle, list []Fit) error {
	mib := func(bytes int64) string { return units.Mebibytes(float64(bytes)) }
	fmt.Fprintf(out, "%s: memory of training on a GPU, by plan\nlargest bucket: %s\n\n", m.Name,
		Symbols(m.Buckets[len(m.Buckets)-1], m.Inputs))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "precision\tfixed, MiB\tCUDA, MiB\tarena of 1, 16 and 64 rows, MiB")
	for _, f := range list {
		var arenas []string
		for _, p := range f.Planned {
			if p.Rows == 1 || p.Rows == 16 || p.Rows == 64 {
				arenas = append(arenas, mib(p.ArenaBytes))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", names[f.Precision], mib(int64(f.FixedBytes)), mib(int64(f.LibraryBytes)),
			strings.Join(arenas, ", "))
	}
	fmt.Fprint(w, "\n--batch-size on a card of")
	for _, f := range list {
		fmt.Fprintf(w, "\t%s", names[f.Precision])
	}
	fmt.Fprintln(w)
	for i, card := range Cards {
		fmt.Fprintf(w, "%d GB", card)
		for _, f := range list {
			fmt.Fprintf(w, "\t%s", largestText(f.Largest[i].Rows))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%.0f %% of a card are used. Fixed are weights, bf16 copies, gradients and moments.\n"+
		"--accumulate needs 4 bytes more for each trained value.\n"+
		"Stages on the same card (--data-gpu) need half a GiB and more.\n%s measures what a run takes.\n", 100*usable,
		hint.Command("validate"))
	return err
}

// names are the values of --precision.
var names = map[string]string{string(manifest.F32): "f32, tf32", string(manifest.BF16): "bf16"}

func largestText(rows int) string {
	switch rows {
	case 0:
		return "does not fit"
	case most:
		return fmt.Sprintf("%d or more", most)
	}
	return fmt.Sprint(rows)
}
