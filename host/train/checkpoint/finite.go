package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// NotFiniteError says which value of a tensor is not a number or infinite. No training continues from such a value, and
// no checkpoint has one.
type NotFiniteError struct {
	Tensor  string
	Shape   []int
	Element int // counted from 0, row by row
	Value   float64
}

func (e *NotFiniteError) Error() string {
	value := fmt.Sprint(e.Value)
	if math.IsInf(e.Value, 0) {
		value = "infinite"
	}
	if len(e.Shape) == 0 {
		return fmt.Sprintf("%s is %s", visible.Short(e.Tensor, 256), value)
	}
	place, rest, all := "", e.Element, 1
	for i := len(e.Shape) - 1; i >= 0; i-- {
		separator := ", "
		if i == 0 {
			separator = ""
		}
		place = fmt.Sprintf("%s%d", separator, rest%e.Shape[i]) + place
		rest, all = rest/e.Shape[i], all*e.Shape[i]
	}
	return fmt.Sprintf("%s[%s] is %s (element %d of %d, counted from 0)", visible.Short(e.Tensor, 256), place, value,
		e.Element, all)
}

// Finite returns a *NotFiniteError for the first value of the tensors that is not finite. It reads each value once,
// with all cores: next to the SHA-256 of a file that costs little.
func Finite(lists ...[]Tensor) error {
	var tensors []Tensor
	for _, list := range lists {
		tensors = append(tensors, list...)
	}
	places := make([]int, len(tensors))
	var next atomic.Int64
	scan := func() {
		for i := next.Add(1) - 1; i < int64(len(tensors)); i = next.Add(1) - 1 {
			places[i] = notFinite(tensors[i])
		}
	}
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tensors)) - 1 {
		wait.Go(scan)
	}
	scan()
	wait.Wait()
	for i, at := range places {
		if t := tensors[i]; at >= 0 {
			return &NotFiniteError{t.Name, t.Shape, at, t.value(at)}
		}
	}
	return nil
}

// FiniteAs is Finite for tensors that were filled from the checkpoint. Its error names the file.
func (c *Checkpoint) FiniteAs(params, averages, moments []Tensor) error {
	for i, list := range [][]Tensor{params, averages, moments} {
		if err := Finite(list); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(c.Path, []string{paramsFile, averageFile, optimizerFile}[i]), err)
		}
	}
	return nil
}

// Finite returns a *NotFiniteError for the first value of the checkpoint that is not finite. Its error names the file.
func (c *Checkpoint) Finite() error {
	files := []struct {
		name   string
		values Weights
	}{{paramsFile, c.Weights}, {averageFile, Weights{c.Averages}}, {optimizerFile, Weights{c.Moments}}}
	for _, f := range files {
		if f.values[0] == nil {
			continue
		}
		for _, info := range f.values.Tensors() {
			t := Tensor{Name: info.Name, Shape: info.Shape, Data: make([]byte, info.Bytes)}
			if info.DType == safetensors.BF16 {
				t.DType = manifest.BF16
			}
			err := f.values.Read(t.Name, t.Data)
			if err == nil {
				err = Finite([]Tensor{t})
			}
			if err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(c.Path, f.name), err)
			}
		}
	}
	return nil
}

// Sound loads the first of the checkpoints of some steps that is intact and finite. The caller closes it. It returns
// nil without one: a search for advice has no errors.
func (s *Store) Sound(steps []int64) *Checkpoint {
	for _, step := range steps {
		c, err := load(s.fs, s.Path(step))
		if err != nil {
			continue
		}
		if c.Finite() == nil {
			return c
		}
		c.Close()
	}
	return nil
}

// A value is not finite exactly if all bits of its exponent are set. Adding 1 at the lowest of them then carries into
// the bit of the sign, which was cleared, and no further: so one addition tests all values of a word.
const (
	exponents32, lowest32, signs32 = 0x7f800000_7f800000, 0x00800000_00800000, 0x80000000_80000000
	exponents16, lowest16, signs16 = 0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080, 0x8000_8000_8000_8000
)

// notFinite returns the element of a tensor that is not finite, or -1.
func notFinite(t Tensor) int {
	exponents, lowest, signs, size := uint64(exponents32), uint64(lowest32), uint64(signs32), 4
	if t.DType == manifest.BF16 {
		exponents, lowest, signs, size = exponents16, lowest16, signs16, 2
	}
	const block = 64 // bytes that are tested together
	data, at := t.Data, 0
	for ; len(data)-at >= block; at += block {
		b, test := (*[block]byte)(data[at:]),
			func(word []byte) uint64 { return binary.LittleEndian.Uint64(word)&exponents + lowest }
		found := test(b[0:]) | test(b[8:]) | test(b[16:]) | test(b[24:]) | test(b[32:]) | test(b[40:]) | test(b[48:]) |
			test(b[56:])
		if found&signs != 0 {
			break
		}
	}
	for ; at < len(data); at += size {
		if v := t.value(at / size); math.IsNaN(v) || math.IsInf(v, 0) {
			return at / size
		}
	}
	return -1
}

// value returns an element of a tensor.
func (t Tensor) value(at int) float64 {
	if t.DType == manifest.BF16 {
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*at:])) << 16))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*at:])))
}
