package report

import (
	"encoding/json"
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Probed describes the tensors that a run shows at its evaluations.
type Probed struct {
	File    string `json:"file"`    // in the run folder
	Folder  string `json:"folder"`  // of the pictures
	Tensors int    `json:"tensors"` // that each evaluation shows
	// Evaluations counts those of the whole run that have lines.
	Evaluations int `json:"evaluations"`
	// Incomplete counts the evaluations of this process of which something is missing.
	Incomplete int `json:"incomplete"`
}

// probed writes the line about the probes.
func (t *table) probed(p *Probed) {
	if p == nil {
		return
	}
	text := fmt.Sprintf("%s at %s, in %s", units.Count(p.Tensors, "tensor"), units.Count(p.Evaluations, "evaluation"),
		p.File)
	if p.Incomplete > 0 {
		text += fmt.Sprintf("; %d not complete: log.jsonl says why", p.Incomplete)
	}
	t.row("probed", text)
}

// ProbedLine is a line of probes.jsonl: a tensor at an evaluation. docs/report.md has its keys.
type ProbedLine struct {
	Step      int64     `json:"step"`
	Name      string    `json:"name"`
	Shape     []int     `json:"shape"`
	Mean      Float     `json:"mean"`
	Std       Float     `json:"std"`
	Min       Float     `json:"min"`
	Max       Float     `json:"max"`
	Norm      Float     `json:"norm"`
	NotFinite int       `json:"not_finite"`
	Edges     []float64 `json:"edges"`
	Counts    []int     `json:"counts"`
	Picture   string    `json:"picture,omitempty"`
}

// ProbedLineOf is the line of a tensor.
func ProbedLineOf(step int64, p event.Probe) ProbedLine {
	return ProbedLine{
		Step: step, Name: p.Name, Shape: append([]int{}, p.Shape...), Mean: Float(p.Mean), Std: Float(p.Std),
		Min: Float(p.Min), Max: Float(p.Max), Norm: Float(p.Norm), NotFinite: p.NotFinite,
		Edges: append([]float64{}, p.Edges...), Counts: append([]int{}, p.Counts...), Picture: p.Picture,
	}
}

// maxProbedLine limits a line, in bytes: it has 65 edges, 64 counts, and a name.
const maxProbedLine = 16 << 10

// ProbedLines writes probes.jsonl. It does not wait for a disk: probes do not end a run.
type ProbedLines struct {
	lines       *lines
	evaluations int
	last        int64
	problem     string
}

// OpenProbed opens or creates probes.jsonl, and removes the lines after a step, as OpenMetrics does. It leaves out
// those that cannot be read.
func OpenProbed(path string, afterStep int64) (*ProbedLines, error) {
	p := new(ProbedLines)
	var err error
	p.lines, p.problem, err = salvageLines(path, maxProbedLine, afterStep, func(l ProbedLine) error {
		p.count(l.Step)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open the lines of probes: %w", err)
	}
	return p, nil
}

func (p *ProbedLines) count(step int64) {
	if step != p.last {
		p.evaluations, p.last = p.evaluations+1, step
	}
}

// Problem says which lines were left out when the file was opened; empty without one.
func (p *ProbedLines) Problem() string { return p.problem }

// Evaluations counts the evaluations that have lines.
func (p *ProbedLines) Evaluations() int { return p.evaluations }

// Write appends the lines of an evaluation, with one write.
func (p *ProbedLines) Write(e *event.Probed) error {
	text := p.lines.buf[:0]
	for _, t := range e.Tensors {
		line, err := json.Marshal(ProbedLineOf(e.Step, t))
		if err != nil {
			return err
		}
		if err := p.lines.fits(line); err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	if p.lines.buf = text; len(text) == 0 {
		return nil
	}
	if err := p.lines.append(text); err != nil {
		return err
	}
	p.count(e.Step)
	return p.lines.sync()
}

// Close closes the file. It is idempotent.
func (p *ProbedLines) Close() error {
	if p == nil {
		return nil
	}
	return p.lines.close()
}
