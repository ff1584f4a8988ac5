package report

// Before is what a resumed run did before this process. The zero value is a new run.
type Before struct {
	Steps History
	// Recent holds, for each metric, its values in the last steps that were not skipped.
	Recent [][]float64
	// Evaluation is the last one, nil without one.
	Evaluation *Evaluation
	// Baselines are those of the last report.
	Baselines []Baseline
	// Warm is the number of first steps whose time does not count, in addition to the first one of a report.
	Warm int64
}

// History sums up steps: the steps of a run before it was resumed, or all of them. The zero value has no step.
type History struct {
	// Steps are the completed steps; Skipped of them changed no weights.
	Steps, Skipped int64
	// Samples and Frames were trained on.
	Samples, Frames int64
	// First, Last and Best (the lowest) are losses of the steps that were not skipped; 0 if there was none.
	First, Last, Best float64
}

func (h *History) add(loss float64, skipped bool, samples, frames int64) {
	h.Samples += samples
	h.Frames += frames
	if skipped {
		h.Steps++
		h.Skipped++
		return
	}
	if h.Steps == h.Skipped {
		h.First, h.Best = loss, loss
	}
	h.Steps++
	h.Last, h.Best = loss, min(h.Best, loss)
}
