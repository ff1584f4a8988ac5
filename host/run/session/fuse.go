package session

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/kernels"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// errUnfused is why the training graph runs as exported with --fuse off.
var errUnfused = errors.New("--fuse off")

// Fusion is how the training graphs of a session, one for each player, and the evaluation graph are fused.
type Fusion struct {
	graphs     []fusedGraph // by player; none before the trial runs
	evaluation fusedGraph
	reason     error // why there is no compiler for them; nil on the CPU
	tried      bool  // a compiler for them was opened
	never      bool  // trial runs of other batches use the graphs as exported
}

// fusedGraph is how a graph is fused.
type fusedGraph struct {
	of     string // what names it in a message, after "graph"
	player string
	facts  *report.Fused // nil if it is not
	reason error         // why it is not
}

// addCompiler adds the compiler for the kernels of the training graph; none if the graph runs as exported.
func addCompiler(s *Session, to *train.FuseConfig) error {
	c := s.plan.Config
	switch {
	case !s.plan.OnGPU() || s.Fusion.never:
		return nil
	case c.Fuse == config.Off:
		s.Fusion.reason = errUnfused
		return nil
	}
	cache, err := config.CacheFolder(c.CacheDir)
	if err != nil || c.CacheUnconfirmed {
		cache = "" // then the kernels are compiled and proved at each start
	} else {
		cache = filepath.Join(cache, "kernels")
	}
	compiler, err := kernels.New(s.Device.Context, kernels.Config{
		Capability: s.plan.Placement.Model.GPU.Capability, TF32: s.plan.Precision.TF32,
		Deterministic: s.Device.Deterministic, Library: ort.Library(), Cache: cache,
	}, s.log)
	if err != nil {
		return s.Fusion.leave(c.Fuse, err)
	}
	s.Fusion.tried = true
	compiler.SetGPU(&to.Form)
	to.Compiler, to.Costs = compiler, s.costs
	if cache != "" {
		to.Proofs = compiler.Proofs()
	}
	return nil
}

// leave records why no training graph can be fused. With --fuse on that is an error.
func (f *Fusion) leave(mode config.Switch, reason error) error {
	f.reason = reason
	return required(mode, reason)
}

// required returns an error if --fuse on requires what cannot be done for the reason.
func required(mode config.Switch, reason error) error {
	if mode != config.On {
		return nil
	}
	return hint.Errorf(hint.Of(reason)+", or train with --fuse auto", "--fuse on: %w", reason)
}

// maxWarnings is how many faulty kernels have a warning of their own: one cause may refuse all programs of a kind.
const maxWarnings = 8

// prepared records how the training graphs are fused, and warns of what a person should know.
func (f *Fusion) prepared(c *config.Config, p train.Prepared, log *slog.Logger) error {
	if f.reason != nil && !errors.Is(f.reason, errUnfused) {
		log.Warn(fmt.Sprintf("the training graph is not fused, so a step takes about twice as long: %v; %s", f.reason,
			hint.Of(f.reason)))
	}
	narrowed, fused := 0, false
	f.graphs = nil
	for _, form := range p.Forms {
		g := fusedGraph{of: report.OfPlayer(form.Player), player: form.Player, reason: f.reason}
		if form.Unfused != nil {
			g.reason = hint.Errorf("report this error with the model", "%w", form.Unfused)
			if err := required(c.Fuse, g.reason); err != nil {
				return err
			}
			log.Warn(fmt.Sprintf("the training graph%s is not fused, so a step takes about twice as long: %v; %s", g.of,
				g.reason, hint.Of(g.reason)))
		}
		if form.Fusion != nil {
			g.facts, fused, narrowed = described(form.Fusion), true, narrowed+form.Fusion.Narrowed
			g.warnOfFaults(log)
			g.warnOfCost(log)
		}
		f.graphs = append(f.graphs, g)
	}
	f.evaluation = fusedGraph{of: " of evaluation", reason: p.Evaluation.Unfused}
	if reason := p.Evaluation.Unfused; reason != nil {
		log.Warn(fmt.Sprintf("the evaluation graph is not fused, so it needs more memory than training: %v", reason))
	}
	if p.Evaluation.Fusion != nil {
		f.evaluation.facts = described(p.Evaluation.Fusion)
		f.evaluation.warnOfFaults(log)
	}
	if c.Attention == config.BF16Attention && fused && narrowed == 0 {
		log.Warn("--attention bf16 has no effect: the graph has no attention in f32 for which there is a kernel")
	}
	return nil
}

// warnOfFaults warns of kernels that are not used.
func (g *fusedGraph) warnOfFaults(log *slog.Logger) {
	for i, fault := range g.facts.Faulty {
		if i == maxWarnings {
			log.Warn(fmt.Sprintf("%d more kernels of the fused graph%s are faulty and not used; report.json names them",
				len(g.facts.Faulty)-i, g.of))
			break
		}
		log.Warn("a kernel of the fused graph" + g.of + " is faulty, so it is not used: " + fault +
			"; the results of this run are right; please report this line, with the model or the operators around " +
			"that tensor")
	}
	for _, fault := range g.facts.AsExported {
		log.Warn("a bucket has the graph" + g.of + " as exported, although each kernel of its fused graph is right: " +
			fault + "; the results of this run are right, and take more time or memory; please report this line, " +
			"with the model")
	}
}

// described is the fusion of a graph for the report.
func described(f *train.Fusion) *report.Fused {
	r := &report.Fused{
		Kernels: f.Kernels, ArenaBytes: f.ArenaBytes, UnfusedBytes: f.UnfusedBytes,
		Distances: []report.Float{}, Roundings: []report.Float{},
		Left: append([]string{}, f.Left...), Refused: append([]string{}, f.Refused...),
		Faulty:     append([]string{}, f.Faulty...),
		AsExported: append([]string{}, f.AsExported...), Unproved: append([]string{}, f.Unproved...),
		PlanS: f.Times.Plan.Seconds(), CompileS: f.Times.Compile.Seconds(), OpenS: f.Times.Open.Seconds(),
		ProofS: f.Times.Proof.Seconds(), Predicted: f.Predicted,
	}
	for _, d := range f.Distances {
		r.Distances = append(r.Distances, report.Float(d))
	}
	for _, d := range f.Roundings {
		r.Roundings = append(r.Roundings, report.Float(d))
	}
	return r
}

// Training returns how the training graph of a player is fused. If it is not, the reason is that; on the CPU there is
// none.
func (f *Fusion) Training(player int) (graph *report.Fused, reason string) {
	if player >= len(f.graphs) {
		return nil, ""
	}
	return f.graphs[player].report()
}

// Evaluation returns how the evaluation graph is fused. There is no reason if nothing is gained by that.
func (f *Fusion) Evaluation() (graph *report.Fused, reason string) { return f.evaluation.report() }

func (g *fusedGraph) report() (graph *report.Fused, reason string) {
	if g.facts == nil && g.reason != nil {
		reason = g.reason.Error()
	}
	return g.facts, reason
}

// Lines describe the graphs for the start of a run on a GPU: those of training, and that of evaluation if it is fused.
func (f *Fusion) Lines() (lines []string) {
	line := func(name string, g *fusedGraph) {
		text := ""
		if name != "" {
			text = name + ": "
		}
		if facts, reason := g.report(); facts != nil {
			text += fmt.Sprintf("%s; %.1f s to compile, %.1f s to prove", facts, facts.CompileS, facts.ProofS)
		} else {
			text += "none: " + reason
		}
		lines = append(lines, text)
	}
	for i := range f.graphs {
		line(f.graphs[i].player, &f.graphs[i])
	}
	if f.evaluation.facts != nil || f.evaluation.reason != nil {
		line(report.Evaluating, &f.evaluation)
	}
	return lines
}
