package frozen

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// The input ports, as named in plugin.json. The graph has them under the same names.
const (
	waveform        = "waveform"         // f32[B, T_wav], samples in [-1, 1]
	waveformLengths = "waveform_lengths" // i32[B], in samples
)

// Stage runs an inference graph that makes a sequence of each waveform. It rejects a row with a sample that is not
// finite, and one whose sequence is longer than the bucket's.
type Stage struct {
	output, lengths string         // ports
	dtype           manifest.DType // of the output
	openGPU         gpustage.Opener

	card    *card  // nil on the CPU
	makes   *graph // the part that makes the output; nil on a GPU
	counts  *graph // the part that computes the lengths alone
	weights *weights
}

// New returns a stage whose output port, of that type, and its lengths have these names. openGPU opens the GPU of a
// configuration that has one. If it is nil, such a configuration is refused.
func New(output, lengths string, dtype manifest.DType, openGPU gpustage.Opener) *Stage {
	return &Stage{output: output, lengths: lengths, dtype: dtype, openGPU: openGPU}
}

// config is that of plugin.json: names of files of the bundle.
type config struct {
	Graph   string `json:"graph"`
	Weights string `json:"weights"`
}

// Configure opens the graph, on the GPU of the configuration or on the CPU. It refuses a graph with other inputs or
// outputs, and buckets that are too small for what the graph makes of their longest waveform.
func (s *Stage) Configure(_ context.Context, cfg *stage.Config) error {
	var c config
	if err := cfg.Decode(&c); err != nil {
		return err
	}
	for _, name := range []string{c.Graph, c.Weights} {
		if _, ok := cfg.Files[name]; name != "" && !ok {
			return fmt.Errorf("the bundle has no file %q", name)
		}
	}
	if cfg.Device != "" {
		if err := s.openCard(cfg); err != nil {
			return err
		}
	}
	part, err := s.open(cfg.Files[c.Graph], cfg.Files[c.Weights])
	if err != nil {
		return hint.Errorf("docs/bundle.md says what an inference graph is", "%w", err)
	}
	for bucket := range cfg.Buckets() {
		if err := s.fits(cfg, bucket); err != nil {
			return fmt.Errorf("bucket %d: %w", bucket, err)
		}
	}
	if s.card == nil {
		return nil
	}
	if err := s.card.load(s, cfg, part); err != nil {
		return err
	}
	return s.dropWeights()
}

// Close releases the graph, its weights and the GPU.
func (s *Stage) Close() error {
	return errors.Join(s.card.Close(), s.makes.Close(), s.counts.Close(), s.weights.Close())
}

// open opens what computes on the CPU: the part that counts, and, without a GPU, the part that makes the output, which
// it returns.
func (s *Stage) open(file, frozen string) (*model, error) {
	// The path of the library comes from the environment, as in the host. With a GPU, it is loaded already.
	if err := ort.Init(ort.Options{}); err != nil {
		return nil, err
	}
	m, err := readModel(file)
	if err != nil {
		return nil, err
	}
	if s.weights, err = readWeights(frozen); err != nil {
		return nil, err
	}
	counts, err := m.part(s.weights, s.lengths)
	if err != nil {
		return nil, err
	}
	if s.counts, err = open(counts, s.weights); err != nil {
		return nil, err
	}
	part, err := m.part(s.weights, s.output)
	if err != nil || s.card != nil {
		return part, err
	}
	if s.makes, err = open(part, s.weights); err != nil {
		return nil, err
	}
	if made := s.makes.session.Outputs()[0]; made.DType != s.dtype {
		return nil, fmt.Errorf("%s returns %s of type %s, but the port takes %s", m.name, s.output, made.DType, s.dtype)
	}
	return part, nil
}

// dropWeights releases the weights in host memory when the GPU has them, unless the part that counts takes any.
func (s *Stage) dropWeights() error {
	for _, in := range s.counts.session.Inputs() {
		if s.weights.tensors[in.Name] != nil {
			return nil
		}
	}
	w := s.weights
	s.weights = nil
	return w.Close()
}

// onSilence gives work a row of silence, and the number of elements that the graph makes of it.
func (s *Stage) onSilence(samples int, work func(r *row, n int) error) error {
	memory, err := ort.NewBuffer(samples * manifest.F32.Size())
	if err != nil {
		return err
	}
	defer memory.Close()
	r, err := newRow(memory.Bytes(), samples)
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := s.count(r)
	if err != nil {
		return err
	}
	return work(r, n)
}

// fits refuses a bucket that lacks room for what the graph makes of its longest rows.
func (s *Stage) fits(cfg *stage.Config, bucket int) error {
	wave, out := cfg.Shape(bucket, waveform), cfg.Shape(bucket, s.output)
	return s.onSilence(wave[1], func(r *row, n int) error {
		if n > out[1] {
			return hint.Errorf(fmt.Sprintf("give the bucket at least %d, or fewer samples", n),
				"%s has room for %d elements, but %d samples make %d", s.output, out[1], wave[1], n)
		}
		if s.card != nil {
			return nil // the trial runs check the shape of an element
		}
		// The shape of an element is checked by binding it.
		result, err := ort.NewBuffer(n * size(out[2:]) * s.dtype.Size())
		if err != nil {
			return err
		}
		defer result.Close()
		return s.run(r, result.Bytes(), n, out[2:])
	})
}

// Process computes the rows in parallel. The bits of a row depend only on that row.
func (s *Stage) Process(ctx context.Context, b *stage.Batch) error {
	var (
		samples, lengths = b.Int32(waveformLengths), b.Int32(s.lengths)
		wave, out        = b.Bytes(waveform), b.Bytes(s.output)
		shape            = b.Shape(s.output)
		width, element   = b.Shape(waveform)[1], size(shape[2:]) * s.dtype.Size()
		room             = shape[1] * element
		padding          = pad(s.dtype, b.Pad(s.output))
		errs             = make([]error, len(samples))
	)
	for row, n := range samples {
		if n < 0 || int(n) > width {
			return fmt.Errorf("row %d: %d samples in a row of %d", row, n, width)
		}
	}
	// The longest first: none of them begins when the others are done.
	order := make([]int, len(samples))
	for row := range order {
		order[row] = row
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(samples[b], samples[a]) })
	stage.EachRow(len(order), func(i int) {
		if ctx.Err() != nil {
			return // no one waits for the result any more
		}
		row := order[i]
		own := out[row*room : (row+1)*room]
		n, reason, err := s.row(ctx, wave[row*width*manifest.F32.Size():], int(samples[row]), own, shape)
		if reason != "" {
			b.Reject(row, reason)
		}
		lengths[row], errs[row] = int32(n), err
		for rest := own[n*element:]; len(rest) > 0; rest = rest[len(padding):] {
			copy(rest, padding)
		}
	})
	for row, err := range errs {
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
	}
	return ctx.Err()
}

// row computes one row, and returns the number of its elements, or why the row cannot be used.
func (s *Stage) row(
	ctx context.Context, wave []byte, samples int, out []byte, shape []int,
) (n int, reason string, err error) {
	if samples == 0 {
		return 0, "", nil
	}
	for i := range samples {
		x := math.Float32frombits(binary.LittleEndian.Uint32(wave[4*i:]))
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return 0, fmt.Sprintf("sample %d is %v", i, x), nil
		}
	}
	r, err := newRow(wave, samples)
	if err != nil {
		return 0, "", err
	}
	defer r.Close()
	if n, err = s.count(r); err != nil {
		return 0, "", err
	}
	if n > shape[1] {
		why := fmt.Sprintf("%d samples make %d elements of %s, more than the bucket's %d",
			samples, n, s.output, shape[1])
		return 0, why, nil
	}
	if n < 1 {
		return 0, "", nil
	}
	if s.card != nil {
		return n, "", s.card.run(ctx, wave[:samples*manifest.F32.Size()], out[:n*size(shape[2:])*s.dtype.Size()], n)
	}
	return n, "", s.run(r, out, n, shape[2:])
}

// count returns how many elements the graph makes of a row.
func (s *Stage) count(r *row) (int, error) {
	err := s.counts.run(r.inputs, map[string]*ort.Tensor{s.lengths: r.count})
	return int(ort.View[int32](r.count.Bytes())[0]), err
}

// run writes the elements of a row, on the CPU.
func (s *Stage) run(r *row, out []byte, n int, element []int) error {
	t, err := ort.NewTensor(out, s.dtype, slices.Concat([]int{1, n}, element))
	if err != nil {
		return err
	}
	defer t.Close()
	return s.makes.run(r.inputs, map[string]*ort.Tensor{s.output: t})
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// pad returns the bytes of an element of padding.
func pad(dtype manifest.DType, value float64) []byte {
	bits := uint32(int32(value))
	if dtype == manifest.F32 {
		bits = math.Float32bits(float32(value))
	}
	return binary.LittleEndian.AppendUint32(nil, bits)
}

// row are the tensors of one row of a batch.
type row struct {
	memory *ort.Buffer // of the numbers
	inputs map[string]*ort.Tensor
	count  *ort.Tensor
}

func newRow(wave []byte, samples int) (*row, error) {
	r := &row{inputs: map[string]*ort.Tensor{}}
	var err error
	if r.memory, err = ort.NewBuffer(2 * align); err != nil {
		return nil, err
	}
	numbers := r.memory.Bytes()
	binary.LittleEndian.PutUint32(numbers, uint32(samples))
	if r.inputs[waveform], err = ort.NewTensor(wave, manifest.F32, []int{1, samples}); err == nil {
		if r.inputs[waveformLengths], err = ort.NewTensor(numbers, manifest.I32, []int{1}); err == nil {
			r.count, err = ort.NewTensor(numbers[align:], manifest.I32, []int{1})
		}
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close releases the tensors, and not the memory of the batch.
func (r *row) Close() {
	for _, t := range []*ort.Tensor{r.inputs[waveform], r.inputs[waveformLengths], r.count} {
		if t != nil {
			t.Close()
		}
	}
	r.memory.Close()
}
