package session

import (
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train"
)

// Graphs lists the graphs that run.
func (s *Session) Graphs() []report.Graph {
	training, evaluation := s.Model.Programs()
	graph := func(use string, p train.Program) report.Graph {
		return report.Graph{
			Use: use, Player: p.Player, File: p.File, Precision: p.Precision, Nodes: p.Nodes, SHA256: p.SHA256,
			OneThread: p.OneThread,
		}
	}
	var list []report.Graph
	for i, p := range training {
		g := graph(report.Training, p)
		g.Fused, g.Unfused = s.Fusion.Training(i)
		list = append(list, g)
	}
	g := graph(report.Evaluating, evaluation)
	g.Fused, g.Unfused = s.Fusion.Evaluation()
	return append(list, g)
}
