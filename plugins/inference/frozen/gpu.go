package frozen

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// narrowest is the least width of a row on a GPU, in samples. The widths do not depend on the run's buckets, because
// the bits of a row may depend on its width, and runs with other buckets share a feature cache.
const narrowest = 8192

// widths returns the widths that rows of up to some number of samples need, the widest first. Each is twice the next:
// ONNX Runtime prepares a convolution at each change of the width, and the GPU computes silence faster than that.
func widths(samples int) []int {
	list := []int{narrowest}
	for w := narrowest; w < samples; list = append(list, w) {
		w *= 2
	}
	slices.Reverse(list)
	return list
}

// card computes rows on the data GPU. Each is a batch of the program, whose buckets are the widths.
type card struct {
	device  gpustage.Device
	program gpustage.Program
	output  string
	buckets []gpustage.Bucket
}

// openCard opens the GPU of a configuration. It initializes ONNX Runtime for it, so it precedes any use on the CPU.
func (s *Stage) openCard(cfg *stage.Config) error {
	if s.openGPU == nil {
		return fmt.Errorf("stage %s was given %s but cannot open a GPU", cfg.Stage, cfg.Device)
	}
	device, err := s.openGPU(cfg)
	if err != nil {
		return err
	}
	s.card = &card{device: device, output: s.output}
	return nil
}

// load loads the part of the graph that makes the output, and runs it once on silence of each width. The widest is
// first: the memory for it is enough for the others, whatever the order of the rows.
func (c *card) load(s *Stage, cfg *stage.Config, part *model) error {
	longest, element := 0, cfg.Shape(0, s.output)[2:]
	for bucket := range cfg.Buckets() {
		longest = max(longest, cfg.Shape(bucket, waveform)[1])
		if other := cfg.Shape(bucket, s.output)[2:]; !slices.Equal(element, other) {
			return fmt.Errorf("elements of %s are %v in bucket 0 and %v in bucket %d", s.output, element, other, bucket)
		}
	}
	for _, width := range widths(longest) {
		err := s.onSilence(width, func(_ *row, n int) error {
			if n > 0 { // a width that makes no element serves no row
				c.buckets = append(c.buckets, s.bucket(part, width, slices.Concat([]int{n}, element)))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	data, err := proto.Marshal(part.proto)
	if err != nil {
		return err
	}
	g := gpustage.Graph{
		Name: strings.TrimSuffix(part.name, ".onnx"), Model: data, Tables: s.weights.tables(part), OnCPU: true,
		Buckets: c.buckets,
	}
	began := time.Now()
	if c.program, err = c.device.Load(g); err != nil {
		if hint.Of(err) == "" {
			err = hint.Errorf("with --data-gpu cpu the stages compute on the CPU", "%w", err)
		}
		return err
	}
	took := time.Since(began).Milliseconds()
	used, err := c.device.Used()
	cfg.Log.Info("computing on the data GPU", "graph", g.Name, "device", cfg.Device, "widths", len(c.buckets),
		"trial_ms", took, "process_mb", used>>20)
	return err
}

// bucket describes the rows of a width, whose output has this shape.
func (s *Stage) bucket(part *model, width int, output []int) gpustage.Bucket {
	b := gpustage.Bucket{Rows: 1, Outputs: []gpustage.Tensor{{Name: s.output, DType: s.dtype, Row: output, Own: true}}}
	for _, in := range part.inputs() {
		switch in {
		case waveform:
			b.Inputs = append(b.Inputs, gpustage.Tensor{Name: in, DType: manifest.F32, Row: []int{width}, Own: true})
		case waveformLengths:
			b.Inputs = append(b.Inputs,
				gpustage.Tensor{Name: in, DType: manifest.I32, Own: true, Trial: binary.LittleEndian.AppendUint32(nil,
					uint32(width))})
		}
	}
	return b
}

// tables returns the weights that a part of a graph takes.
func (w *weights) tables(part *model) []gpustage.Table {
	var list []gpustage.Table
	for _, in := range part.inputs() {
		if t := w.tensors[in]; t != nil {
			list = append(list, gpustage.Table{Name: in, DType: t.DType(), Shape: t.Shape(), Data: t.Bytes()})
		}
	}
	return list
}

// run computes a row, and copies as many bytes of its output as out has, which are this number of elements.
func (c *card) run(ctx context.Context, wave, out []byte, elements int) error {
	samples := len(wave) / manifest.F32.Size()
	bucket := c.bucketOf(samples, elements)
	if bucket < 0 {
		return fmt.Errorf("no width on the GPU has room for %d elements of %d samples", elements, samples)
	}
	call, err := c.program.Begin(ctx, bucket)
	if err != nil {
		return err
	}
	defer call.End()
	for _, in := range c.buckets[bucket].Inputs {
		host := call.Host(in.Name)
		if in.Name == waveformLengths {
			binary.LittleEndian.PutUint32(host, uint32(samples))
			continue
		}
		clear(host[copy(host, wave):])
	}
	if err := call.Run(nil, nil); err != nil {
		return err
	}
	copy(out, call.Host(c.output))
	return nil
}

// bucketOf returns the narrowest bucket that has room for a row, or -1.
func (c *card) bucketOf(samples, elements int) int {
	for i, b := range slices.Backward(c.buckets) {
		wide := true
		for _, in := range b.Inputs {
			wide = wide && (in.Name != waveform || in.Row[0] >= samples)
		}
		if wide && b.Outputs[0].Row[0] >= elements {
			return i
		}
	}
	return -1
}

// Close releases the GPU.
func (c *card) Close() error {
	if c == nil {
		return nil
	}
	var err error
	if c.program != nil {
		err = c.program.Close()
	}
	return errors.Join(err, c.device.Close())
}
