package synthesize

import (
	"context"
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// model is a speaker with its device and its weights.
type model struct {
	speaker *Speaker
	from    string // where the weights are from
	rules   texts.Rules

	device  *device.Device
	staging *ort.Buffer // the way of weights to a GPU
	runtime *inference.Runtime
	weights func() error // closes them
}

// openModel opens the graphs on the device of the settings, with the weights of the run, or else of the bundle. What
// the user can correct is a refusal.
func openModel(ctx context.Context, set *config.Set, bundle *ortgraphs.Bundle) (_ *model, err error) {
	m := &model{device: new(device.Device)}
	defer func() {
		if err != nil {
			err = errors.Join(m.device.Full(err), m.close())
		}
	}()
	weights, err := m.open(set, bundle)
	if err != nil {
		return nil, exit.Refused(err)
	}
	placement, err := place.Find(&set.Config, inventory.Open)
	if err != nil {
		return nil, exit.Refused(err)
	}
	if err := context.Cause(ctx); err != nil { // the files of weights have been read for their sums
		return nil, err
	}
	onGPU := !placement.Model.OnCPU()
	if err := ort.Init(ort.Options{Library: set.ORTLib, CUDA: onGPU}); err != nil {
		return nil, exit.Refused(err)
	}
	if m.staging, err = ort.NewBuffer(gpu.StagingBytes); err != nil {
		return nil, err
	}
	if onGPU {
		opened, err := device.Open(
			device.Config{UUID: placement.Model.GPU.UUID, Ring: m.staging.Bytes(), Deterministic: true})
		if err != nil {
			return nil, err
		}
		m.device = opened
	}
	m.runtime = inference.New(inference.Config{
		Bundle: bundle, Weights: weights, Device: m.device, Staging: m.staging.Bytes(), Threads: threads(set),
	})
	m.speaker, err = NewSpeaker(ctx, bundle.Manifest.Synthesis, m.runtime)
	return m, err
}

// open opens the weights: the averages of a run that has them, as its evaluations do.
func (m *model) open(set *config.Set, bundle *ortgraphs.Bundle) (inference.Weights, error) {
	if set.Resume == "" {
		m.from, m.rules = "the initial weights of "+set.Graph, set.Normalize.Rules
		file, err := bundle.Weights()
		if err != nil {
			return nil, err
		}
		m.weights = file.Close
		return file, nil
	}
	c, damaged, err := checkpoint.NewStore(set.Resume).Find(set.ResumeAt)
	if err != nil {
		return nil, fmt.Errorf("--run %s: %w", set.Resume, err)
	}
	m.from, m.weights = c.Path, c.Close
	if m.rules, err = texts.Parse(c.State.Hashes[texts.Identity]); err != nil {
		return nil, hint.Errorf("the checkpoint is of another version of this program: use that one",
			"%s: %s: %w", c.Path, texts.Identity, err)
	}
	for _, d := range damaged {
		m.from += visible.Text(fmt.Sprintf("; %s is damaged and skipped: %v", d.Path, d.Err))
	}
	all := c.Weights
	if c.Averages != nil {
		all = append(checkpoint.Weights{c.Averages}, all...)
		m.from += " (moving average)"
	}
	return all, fitting(all, bundle, c.Path)
}

// fitting checks that the weights are those of the bundle, and no others: weights without their adapters speak
// otherwise.
func fitting(weights checkpoint.Weights, bundle *ortgraphs.Bundle, path string) error {
	stored := bundle.Stored()
	for _, t := range weights.Tensors() {
		if _, ok := stored[t.Name]; !ok {
			return hint.Errorf("leave --graph out, so that the bundle is that of the run",
				"%s has a tensor %q, which the bundle %s does not have: it is of another bundle", path, t.Name,
				bundle.Manifest.Name)
		}
	}
	for name, shape := range stored {
		found, ok := weights.Tensor(name)
		switch {
		case !ok:
			return fmt.Errorf("%s has no tensor %q, which the bundle %s has: it is of another bundle", path, name,
				bundle.Manifest.Name)
		case found.DType != safetensors.F32 || fmt.Sprint(found.Shape) != fmt.Sprint(shape):
			return fmt.Errorf("%q is %s%v in %s, and F32%v in the bundle %s", name, found.DType, found.Shape, path,
				shape, bundle.Manifest.Name)
		}
	}
	return nil
}

// warm prepares a GPU for the first sound. A CPU has nothing to prepare.
func (m *model) warm(ctx context.Context, voice *Voice, text Text) error {
	if m.device.CUDA == nil {
		return nil
	}
	return m.speaker.Warm(ctx, voice, text)
}

func (m *model) close() error {
	var errs []error
	if m.runtime != nil {
		errs = append(errs, m.runtime.Close())
	}
	errs = append(errs, m.device.Close())
	if m.staging != nil {
		errs = append(errs, m.staging.Close())
	}
	if m.weights != nil {
		errs = append(errs, m.weights())
	}
	return errors.Join(errs...)
}
