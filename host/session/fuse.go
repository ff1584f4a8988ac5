package session

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/kernels"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// errUnfused is why the training graph runs as exported with --fuse off.
var errUnfused = errors.New("--fuse off")

// Fusion is how the training graph of a session is fused.
type Fusion struct {
	graph  *report.Fused // nil if it is not
	reason error         // why it is not; nil on the CPU
	tried  bool          // a compiler for it was opened
	never  bool          // trial runs of other batches use the graph as exported
}

// newCompiler returns the compiler for the kernels of the training graph; nil if the graph runs as exported.
func newCompiler(s *Session) (fused.Compiler, error) {
	c := s.plan.Config
	switch {
	case !s.plan.OnGPU() || s.Fusion.never:
		return nil, nil
	case c.Fuse == "off":
		s.Fusion.reason = errUnfused
		return nil, nil
	}
	cache, err := config.CacheFolder(c.CacheDir)
	if err != nil {
		cache = "" // then the kernels are compiled at each start
	} else {
		cache = filepath.Join(cache, "kernels")
	}
	compiler, err := kernels.New(s.Device.Context, s.plan.Placement.Model.GPU.Capability, ort.Library(), cache, s.log)
	if err == nil {
		s.Fusion.tried = true
		return compiler, nil
	}
	return nil, s.Fusion.leave(c.Fuse, err)
}

// leave records why the training graph cannot be fused. With --fuse on that is an error.
func (f *Fusion) leave(mode string, reason error) error {
	if mode == "on" {
		return hint.Errorf(hint.Of(reason)+", or train with --fuse auto", "--fuse on: %w", reason)
	}
	f.reason = reason
	return nil
}

// maxWarnings is how many faulty kernels have a warning of their own: one cause may refuse all programs of a kind.
const maxWarnings = 8

// prepared records how the training graph is fused, and warns of what a person should know.
func (f *Fusion) prepared(c *config.Config, p train.Prepared, log *slog.Logger) error {
	if p.Unfused != nil {
		if err := f.leave(c.Fuse, hint.Errorf("report this error with the model", "%w", p.Unfused)); err != nil {
			return err
		}
	}
	if f.reason != nil && !errors.Is(f.reason, errUnfused) {
		log.Warn(fmt.Sprintf("the training graph is not fused, so a step takes about twice as long: %v; %s", f.reason, hint.Of(f.reason)))
	}
	if p.Fusion == nil {
		return nil
	}
	f.graph = described(p.Fusion)
	if c.Attention == "bf16" && p.Fusion.Narrowed == 0 {
		log.Warn("--attention bf16 has no effect: the graph has no attention in f32 for which there is a kernel")
	}
	for i, fault := range f.graph.Faulty {
		if i == maxWarnings {
			log.Warn(fmt.Sprintf("%d more kernels of the fused graph are faulty and not used; report.json names them", len(f.graph.Faulty)-i))
			break
		}
		log.Warn("a kernel of the fused graph is faulty, so it is not used: " + fault +
			"; the results of this run are right; please report this line, with the model or the operators around that tensor")
	}
	return nil
}

// described is the fusion of a graph for the report.
func described(f *train.Fusion) *report.Fused {
	r := &report.Fused{
		Kernels: f.Kernels, Distances: []report.Float{}, Left: append([]string{}, f.Left...), Faulty: append([]string{}, f.Faulty...), Unproved: append([]string{}, f.Unproved...),
		PlanS: f.Times.Plan.Seconds(), CompileS: f.Times.Compile.Seconds(), OpenS: f.Times.Open.Seconds(), ProofS: f.Times.Proof.Seconds(),
	}
	for _, d := range f.Distances {
		r.Distances = append(r.Distances, report.Float(d))
	}
	return r
}

// Report returns how the training graph is fused. If it is not, the reason is that; on the CPU there is none.
func (f *Fusion) Report() (graph *report.Fused, reason string) {
	if f.graph == nil && f.reason != nil {
		reason = f.reason.Error()
	}
	return f.graph, reason
}

// String describes the training graph for the start of a run on a GPU.
func (f *Fusion) String() string {
	g, reason := f.Report()
	if g == nil {
		return "none: " + reason
	}
	return fmt.Sprintf("%s; %.1f s to compile, %.1f s to prove", g, g.CompileS, g.ProofS)
}
