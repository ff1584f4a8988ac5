package record

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// maxPieces bounds the pieces of Steps.
const maxPieces = 1 << 16

// Steps is what metrics.jsonl has.
type Steps struct {
	// Count is the number of lines, Skipped of them changed no weights.
	Count, Skipped  int64
	Samples, Frames int64
	// FirstStep and LastStep are the steps of the first and the last line; First, Last and Best the losses of steps
	// that were not skipped, NaN without one.
	FirstStep, LastStep int64
	First, Last, Best   float64
	BestStep            int64

	Loss, LR, GradNorm, Ms Curve
	// Skips has the steps that were skipped, each with the loss before it. Steps before the first loss are not there.
	Skips Curve
	// Pieces are sums over Width steps each.
	Pieces []Piece
	Width  int
}

// Piece sums up steps.
type Piece struct {
	Last  int64 // step
	Steps float64
	// Ms and Wait are the times of all steps. Timed, TimedMs and Frames leave out the first step of a process.
	Ms, Wait               float64
	Timed, TimedMs, Frames float64
	// Loss is the sum of the finite losses, Losses their number.
	Loss, Losses float64
}

// stepLine is a line of metrics.jsonl.
type stepLine struct {
	Step            *int64
	Loss, LR        *float64
	GradNorm        *float64 `json:"grad_norm"`
	StepMs          float64  `json:"step_ms"`
	InputWaitMs     float64  `json:"input_wait_ms"`
	Samples, Frames int64
	Skipped         bool
}

var (
	// ErrNoStep and ErrOrder say why a line was left out.
	ErrNoStep = errors.New(`"step" is missing`)
	ErrOrder  = errors.New("the steps do not increase")
)

// readSteps reads metrics.jsonl. A process began after each of the steps in began.
func readSteps(path files.Path, began []int64) (*Steps, string) {
	s := &Steps{First: math.NaN(), Last: math.NaN(), Best: math.NaN(), Width: 1}
	first := map[int64]bool{}
	for _, step := range began {
		first[step+1] = true
	}
	problem := Lines(path, func(line []byte) error {
		var v stepLine
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		if v.Step == nil {
			return ErrNoStep
		}
		if *v.Step < 0 || s.Count > 0 && *v.Step <= s.LastStep {
			return ErrOrder
		}
		s.add(&v, s.Count == 0 || first[*v.Step])
		return nil
	})
	return s, problem
}

func value(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// add counts a step. cold is the first one of a process, whose time is not typical.
func (s *Steps) add(v *stepLine, cold bool) {
	step, loss := *v.Step, value(v.Loss)
	if s.Count == 0 {
		s.FirstStep = step
	}
	s.Count++
	s.LastStep = step
	s.Samples, s.Frames = s.Samples+v.Samples, s.Frames+v.Frames
	p := Piece{Last: step, Steps: 1, Ms: v.StepMs, Wait: v.InputWaitMs}
	if v.Skipped {
		s.Skipped++
		s.Skips.Add(step, s.Last)
	} else {
		s.Loss.Add(step, loss)
		s.GradNorm.Add(step, value(v.GradNorm))
	}
	s.LR.Add(step, value(v.LR))
	if !v.Skipped && !math.IsNaN(loss) {
		if math.IsNaN(s.First) {
			s.First = loss
		}
		if s.Last = loss; !(s.Best <= loss) {
			s.Best, s.BestStep = loss, step
		}
		p.Loss, p.Losses = loss, 1
	}
	if !cold {
		s.Ms.Add(step, v.StepMs)
		p.Timed, p.TimedMs, p.Frames = 1, v.StepMs, float64(v.Frames)
	}
	s.Pieces, s.Width = grow(s.Pieces, s.Width, maxPieces, p)
}

func (p Piece) values() int { return int(p.Steps) }

func (p Piece) join(next Piece) Piece {
	return Piece{
		Last: next.Last, Steps: p.Steps + next.Steps, Ms: p.Ms + next.Ms, Wait: p.Wait + next.Wait,
		Timed: p.Timed + next.Timed, TimedMs: p.TimedMs + next.TimedMs, Frames: p.Frames + next.Frames,
		Loss: p.Loss + next.Loss, Losses: p.Losses + next.Losses,
	}
}

// Sum adds up the pieces.
func (s *Steps) Sum() (sum Piece) {
	for _, p := range s.Pieces {
		sum = sum.join(p)
	}
	return sum
}

// Speed returns the steps and the frames of a second, without the first step of each process; 0 without others.
func (s *Steps) Speed() (steps, frames float64) {
	sum := s.Sum()
	if sum.TimedMs <= 0 {
		return 0, 0
	}
	return 1e3 * sum.Timed / sum.TimedMs, 1e3 * sum.Frames / sum.TimedMs
}
