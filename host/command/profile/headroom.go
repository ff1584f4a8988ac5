package profile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/command/inspect"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Headroom is what another machine or setting would give.
type Headroom struct {
	What string `json:"what"`
	// Gain is the gain as a share of the present speed: of a larger batch in frames per second, else in steps per
	// second. It is absent if it was not measured.
	Gain *float64 `json:"gain,omitempty"`
	Text string   `json:"text"`
}

// headroom has what was measured. ready is a run on batches that were ready.
type headroom struct {
	*profiler
	r, ready *report.Report
}

// ofReady is what training on batches that are ready gains.
func (h headroom) ofReady() float64 { return h.ready.StepsPerSecond/h.r.StepsPerSecond - 1 }

// loader compares with input that never makes training wait.
func (h headroom) loader() Headroom {
	gain := h.ofReady()
	noise := math.Hypot(spread(h.r.StepMs.Distribution), spread(h.ready.StepMs.Distribution)) * (1 + gain)
	text := fmt.Sprintf("%s steps/s, %+.1f %% ± %.1f: training on batches that are ready",
		units.Rate(h.ready.StepsPerSecond), 100*gain, 100*noise)
	if gain < 0 {
		text += "; less than now is the noise of this machine, and no loss"
	}
	if a, b := h.r.Verdict.Others, h.ready.Verdict.Others; max(a, b) >= bottleneck.BusyLimit {
		text += fmt.Sprintf("; other programs took %s of the cores in one run and %s in the other", units.Percent(a),
			units.Percent(b))
	}
	return Headroom{"a perfect loader", &gain, text}
}

func (h headroom) onCPU() bool { return h.place.Model.OnCPU() }

func (h headroom) secondGPU() Headroom {
	out := Headroom{What: "a second GPU"}
	s := h.r.Verdict.SecondGPU
	switch {
	case h.onCPU():
		out.Text = "not measured: no GPU trains"
	case s == nil:
		out.Text = "the plugins have a GPU of their own"
	default:
		gain, reason := s.Times-1, s.Reason
		if ready := max(0, h.ofReady()); ready < gain {
			gain, reason = ready, "training on batches that are ready gains no more; "+s.Reason
		}
		out.Gain, out.Text = &gain, fmt.Sprintf("at most %s more steps/s, predicted, not measured: %s",
			units.Percent(gain), reason)
		if n := h.gpus(); n < 2 {
			out.Text += fmt.Sprintf("; this machine has %d", n)
		}
	}
	return out
}

// bf16 measures training in bf16 where that is possible.
func (h headroom) bf16(ctx context.Context) (out Headroom, err error) {
	out = Headroom{What: "bf16"}
	_, has := h.bundle.Manifest.TrainingGraph(h.bundle.Manifest.InTurn()[0].Name, manifest.BF16)
	switch {
	case h.r.Precision == string(manifest.BF16):
		out.Text = "is used"
	case h.onCPU():
		out.Text = "not measured: it needs a GPU"
	case !has:
		out.Text = "the bundle has no graph in bf16"
	default:
		precision := bottleneck.Setting{Name: "precision", Value: string(manifest.BF16)}
		out.Gain, out.Text, err = h.compare(ctx, 1, precision)
		out.Text += h.fits(manifest.BF16)
	}
	return out, err
}

// batch measures batches of twice the rows where there is memory for them.
func (h headroom) batch(ctx context.Context) (out Headroom, err error) {
	rows := 2 * h.set.BatchSize
	out = Headroom{What: fmt.Sprintf("a batch of %d", rows)}
	if h.onCPU() {
		out.Text = "not measured: the memory plan is that of a GPU"
		return out, nil
	}
	out.Gain, out.Text, err = h.compare(ctx, 2, bottleneck.Setting{Name: "batch-size", Value: fmt.Sprint(rows)})
	precision := manifest.F32
	if h.r.Precision == string(manifest.BF16) {
		precision = manifest.BF16
	}
	out.Text += h.fits(precision)
	return out, err
}

// compare trains on ready batches with another setting, and returns the gain over the present ones. rows is by how many
// times a batch has more rows. An error of that run is a reason for which nothing was measured, unless the user ends
// the program.
func (h headroom) compare(ctx context.Context, rows float64, s bottleneck.Setting) (*float64, string, error) {
	r, err := h.train(ctx, batch.ComputeOnly, []bottleneck.Setting{s})
	switch {
	case errors.Is(err, exit.ErrInterrupted), err != nil && ctx.Err() != nil:
		return nil, "", err
	case err != nil:
		why, _, _ := strings.Cut(err.Error(), "\n")
		if exit.OutOfMemory(err) {
			why = "it does not fit: " + why
		}
		return nil, "not measured: " + why, nil
	}
	gain, what := rows*r.StepsPerSecond/h.ready.StepsPerSecond-1, "steps/s"
	if rows != 1 {
		what = "rows/s"
	}
	return &gain, fmt.Sprintf("%+.1f %% %s on batches that are ready", 100*gain, what), nil
}

// fits says how large a batch may be by the plan of `graph fits`; "" if there is none.
func (h headroom) fits(precision manifest.DType) string {
	card := h.place.Model.GPU.Memory
	if card == 0 {
		return ""
	}
	rows, err := inspect.Rows(h.bundle, precision, card)
	if err != nil {
		return ""
	}
	if rows == 0 {
		return fmt.Sprintf("; by the memory plan, no batch in %s fits on %s", precision, units.Size(card))
	}
	return fmt.Sprintf("; by the memory plan, batches of up to %s in %s fit on %s", units.Count(rows, "row"), precision,
		units.Size(card))
}
