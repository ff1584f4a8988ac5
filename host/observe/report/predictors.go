package report

import (
	"encoding/binary"
	"math"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// lossOf returns the loss of one difference between prediction and target, nil for an unknown name. The Huber loss is
// PyTorch's huber_loss: d²/2 up to delta, linear above; delta is 1 if the bundle has none.
func lossOf(b manifest.Baseline) func(d float64) float64 {
	switch b.Loss {
	case "l1":
		return math.Abs
	case "l2":
		return func(d float64) float64 { return d * d }
	case "huber":
		delta := b.Delta
		if delta == 0 {
			delta = 1
		}
		return func(d float64) float64 {
			if d = math.Abs(d); d > delta {
				return delta * (d - delta/2)
			}
			return d * d / 2
		}
	}
	return nil
}

// mean returns the mean of each band over all frames; NaN if there is no frame.
func (s *side) mean(bands int) []float64 {
	sum := make([]float64, bands)
	var values int
	for _, row := range s.rows {
		for i := range len(row) / 4 {
			sum[i%bands] += value(row, i)
		}
		values += len(row) / 4
	}
	for i := range sum {
		sum[i] /= float64(values / bands)
	}
	return sum
}

// losses returns the mean loss over all frames and bands of the two predictions, the constant and the previous frame.
func (s *side) losses(constant []float64, loss func(float64) float64) PredictorLosses {
	bands := len(constant)
	var byConstant, byPrevious float64
	var values int
	for _, row := range s.rows {
		for i := range len(row) / 4 {
			v, previous := value(row, i), 0.0
			if i >= bands {
				previous = value(row, i-bands)
			}
			byConstant += loss(constant[i%bands] - v)
			byPrevious += loss(previous - v)
		}
		values += len(row) / 4
	}
	return PredictorLosses{len(s.rows), byConstant / float64(values), byPrevious / float64(values)}
}

func value(row []byte, i int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:])))
}

// Baseline compares a metric of the model with two predictors without a model. A loss that was not measured is null.
type Baseline struct {
	Metric string `json:"metric"`
	Target string `json:"target"`
	Loss   string `json:"loss"`
	// Rows and EvalRows are the numbers of rows over which the predictors' losses are means.
	Rows     int `json:"rows"`
	EvalRows int `json:"eval_rows"`

	// On training rows: the predictors, the metric's mean over the last 20 steps, and metric / constant.
	Constant        Float `json:"constant"`
	PreviousFrame   Float `json:"previous_frame"`
	TrainMeanLast20 Float `json:"train_mean_last_20"`
	RatioTrain      Float `json:"ratio_train"`

	// On held-out rows: the same predictors (the constant is the mean over the training rows), the metric of the last
	// evaluation, and metric / constant.
	EvalConstant      Float `json:"eval_constant"`
	EvalPreviousFrame Float `json:"eval_previous_frame"`
	Eval              Float `json:"eval"`
	RatioEval         Float `json:"ratio_eval"`
}

// baselines compares the metrics with the predictors' losses.
func (c *Collector) baselines(list []BaselineLosses, e *Evaluation) []Baseline {
	out := make([]Baseline, 0, len(list))
	for _, b := range list {
		b = c.moreRows(b)
		train, eval := Float(math.NaN()), Float(math.NaN())
		for i, name := range c.metrics {
			if name == b.Metric {
				train = mean(c.recent[i])
			}
		}
		if e != nil {
			if v, ok := e.Metrics[b.Metric]; ok {
				eval = v
			}
		}
		out = append(out, Baseline{
			Metric: b.Metric, Target: b.Target, Loss: b.Loss, Rows: b.Train.Rows, EvalRows: b.Eval.Rows,
			Constant: Float(b.Train.Constant), PreviousFrame: Float(b.Train.PreviousFrame),
			TrainMeanLast20: train, RatioTrain: train / Float(b.Train.Constant),
			EvalConstant: Float(b.Eval.Constant), EvalPreviousFrame: Float(b.Eval.PreviousFrame),
			Eval: eval, RatioEval: eval / Float(b.Eval.Constant),
		})
	}
	return out
}

// moreRows replaces the losses of predictors by those of the report before the run was resumed, where these were
// computed on more rows.
func (c *Collector) moreRows(b BaselineLosses) BaselineLosses {
	for _, kept := range c.kept {
		if kept.Metric != b.Metric || kept.Target != b.Target || kept.Loss != b.Loss {
			continue
		}
		if kept.Rows > b.Train.Rows {
			b.Train = PredictorLosses{kept.Rows, float64(kept.Constant), float64(kept.PreviousFrame)}
		}
		if kept.EvalRows > b.Eval.Rows {
			b.Eval = PredictorLosses{kept.EvalRows, float64(kept.EvalConstant), float64(kept.EvalPreviousFrame)}
		}
	}
	return b
}

// mean returns NaN if there are no values.
func mean(values []float64) Float {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return Float(sum / float64(len(values)))
}
