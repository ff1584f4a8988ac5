package prometheus

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// figures are what a scrape returns. All of them are atomic. Labels have few values: metrics and players of the bundle,
// measures, GPUs. Nothing has a label for a clip.
type figures struct {
	registry *prometheus.Registry

	info, phase, metric, lr, gradNorm, evaluationMetric, spoken *prometheus.GaugeVec
	memory, memoryLimit                                         *prometheus.GaugeVec
	step, planned, epoch, loss, stepTime, quarantined           prometheus.Gauge
	evaluationLoss, evaluationStep, bestLoss, bestStep          prometheus.Gauge
	cut, utterances, checkpointTime, checkpointStep             prometheus.Gauge
	steps, skipped, inputWait, samples, frames                  prometheus.Counter
	checkpoints, unsaved, warnings, errors                      prometheus.Counter
	duration                                                    prometheus.Histogram
}

// namespace begins each name.
const namespace = "xtts_host"

func newFigures() *figures {
	f := &figures{registry: prometheus.NewRegistry()}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
		return registered(f, g)
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
		return registered(f, c)
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
		return registered(f, g)
	}
	f.info = gauges("info", "What runs; always 1.", "version", "bundle", "device")
	f.phase = gauges("phase", "1 for the phase that the run is in, 0 for the others.", "phase")
	f.step = gauge("step", "Completed steps of the run, including those before a resume.")
	f.planned = gauge("planned_steps", "The last step of the run.")
	f.epoch = gauge("epoch", "Epoch of the last step, from 0.")
	f.loss = gauge("loss", "Loss of the last step; NaN if it was skipped, and before the first.")
	f.metric = gauges("metric", "Metrics of the bundle in the last step that was not skipped.", "metric")
	f.lr = gauges("learning_rate", "Learning rate of the last step; the player is empty for the only or last one.",
		"player")
	f.gradNorm = gauges("gradient_norm", "Norm of the gradients before clipping; the player is empty likewise.",
		"player")
	f.steps = counter("steps_total", "Steps of this process.")
	f.skipped = counter("skipped_steps_total", "Steps of this process that did not update the model.")
	f.samples = counter("samples_total", "Rows that this process has trained on.")
	f.frames = counter("frames_total", "Target frames that this process has trained on.")
	f.inputWait = counter("input_wait_seconds_total", "Time in which training waited for batches.")
	f.duration = registered(f, prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "step_duration_seconds",
		Help:    "Time since the end of the step before, without evaluation.",
		Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50},
	}))
	f.stepTime = gauge("step_timestamp_seconds", "When the last step ended; 0 before the first of this process.")
	f.evaluationLoss = gauge("evaluation_loss", "Loss of the last evaluation; NaN before the first.")
	f.evaluationMetric = gauges("evaluation_metric", "Metrics of the bundle in the last evaluation.", "metric")
	f.evaluationStep = gauge("evaluation_step", "Step of the last evaluation of this process; 0 before the first.")
	f.bestLoss = gauge("best_evaluation_loss", "Loss of the best evaluation of this process; NaN for none.")
	f.bestStep = gauge("best_evaluation_step", "Step of the best evaluation of this process; 0 for none.")
	f.spoken = gauges("spoken", "Means over the texts that the last evaluation has spoken.", "measure")
	f.utterances = gauge("spoken_texts", "Texts that the last evaluation has spoken.")
	f.cut = gauge("spoken_texts_cut", "Those of them that the model did not end, so that they were cut.")
	f.memory = gauges("gpu_memory_bytes", "Memory that the role's processes use on their GPU.", "gpu", "role")
	f.memoryLimit = gauges("gpu_memory_limit_bytes", "Limit of that memory: of the run, or the card.", "gpu", "role")
	f.checkpoints = counter("checkpoints_total", "Checkpoints that this process has saved.")
	f.checkpointTime = gauge("checkpoint_timestamp_seconds", "When the last checkpoint was saved; 0 before the first.")
	f.checkpointStep = gauge("checkpoint_step", "Step of the last checkpoint of this process; 0 before the first.")
	f.unsaved = counter("unsaved_checkpoints_total", "Checkpoints for which the disk had no room.")
	f.quarantined = gauge("quarantined_clips", "Clips that cannot be used.")
	f.warnings = counter("warnings_total", "Warnings.")
	f.errors = counter("errors_total", "Errors that did not end the run.")
	for _, unknown := range []prometheus.Gauge{f.loss, f.evaluationLoss, f.bestLoss} {
		unknown.Set(math.NaN())
	}
	f.registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f.setPhase(event.Preparing)
	return f
}

func registered[C prometheus.Collector](f *figures, c C) C {
	f.registry.MustRegister(c)
	return c
}

// phases are all of them.
var phases = []event.RunPhase{event.Preparing, event.WarmingUp, event.Training, event.Ending, event.Ended}

func (f *figures) setPhase(now event.RunPhase) {
	for _, p := range phases {
		v := 0.0
		if p == now {
			v = 1
		}
		f.phase.WithLabelValues(string(p)).Set(v)
	}
}

// taker sets figures by events. One goroutine uses it.
type taker struct {
	*figures
	version string
	now     func() time.Time
	metrics []string
	values  []prometheus.Gauge // of metrics
}

func (t *taker) take(e event.Event) {
	switch e := e.(type) {
	case *event.Start:
		t.start(e)
	case *event.Phase:
		t.setPhase(e.Phase)
	case *event.Step:
		t.takeStep(e)
	case *event.Evaluation:
		t.evaluationLoss.Set(e.Loss)
		t.evaluationStep.Set(float64(e.Step))
		for i, v := range e.Metrics {
			t.evaluationMetric.WithLabelValues(t.metrics[i]).Set(v)
		}
		if e.Best {
			t.bestLoss.Set(e.Loss)
			t.bestStep.Set(float64(e.Step))
		}
	case *event.Spoken:
		t.takeSpoken(e)
	case *event.Memory:
		gpu, role := strconv.Itoa(e.GPU), strings.ToLower(e.Role)
		t.memory.WithLabelValues(gpu, role).Set(float64(e.Used))
		t.memoryLimit.WithLabelValues(gpu, role).Set(float64(e.Limit))
	case *event.Checkpoint:
		if e.Err != nil {
			t.unsaved.Inc()
			break
		}
		t.checkpoints.Inc()
		t.checkpointTime.Set(t.seconds())
		t.checkpointStep.Set(float64(e.Step))
	case *event.Warning:
		if e.Error {
			t.errors.Inc()
		} else {
			t.warnings.Inc()
		}
	}
}

func (t *taker) start(e *event.Start) {
	t.info.WithLabelValues(t.version, visible.Text(e.Bundle), visible.Text(e.Device)).Set(1)
	t.step.Set(float64(e.Step))
	t.planned.Set(float64(e.Total))
	t.metrics, t.values = nil, nil
	for _, name := range e.Metrics {
		t.metrics = append(t.metrics, visible.Text(name))
		t.values = append(t.values, t.metric.WithLabelValues(visible.Text(name)))
	}
}

func (t *taker) takeStep(s *event.Step) {
	t.steps.Inc()
	t.step.Set(float64(s.Step))
	t.epoch.Set(float64(s.Epoch))
	if s.Skipped {
		t.skipped.Inc()
		t.loss.Set(math.NaN())
	} else {
		t.loss.Set(s.Loss)
		for i, v := range s.Metrics {
			t.values[i].Set(v)
		}
	}
	t.lr.WithLabelValues("").Set(s.LR)
	t.gradNorm.WithLabelValues("").Set(s.GradNorm)
	for _, p := range s.Players[:max(0, len(s.Players)-1)] {
		t.lr.WithLabelValues(visible.Text(p.Name)).Set(p.LR)
		t.gradNorm.WithLabelValues(visible.Text(p.Name)).Set(p.GradNorm)
	}
	t.duration.Observe(s.Time.Seconds())
	t.inputWait.Add(s.InputWait.Seconds())
	t.samples.Add(float64(s.Samples()))
	t.frames.Add(float64(s.Frames))
	t.stepTime.Set(t.seconds())
}

func (t *taker) takeSpoken(e *event.Spoken) {
	t.spoken.Reset() // a measure may have no value now
	for _, v := range e.Measures {
		t.spoken.WithLabelValues(visible.Text(v.Name)).Set(v.Value)
	}
	cut := 0
	for _, u := range e.Utterances {
		if !u.Ended {
			cut++
		}
	}
	t.utterances.Set(float64(len(e.Utterances)))
	t.cut.Set(float64(cut))
}

func (t *taker) seconds() float64 { return float64(t.now().UnixMilli()) / 1000 }
