package summary

import (
	"log/slog"

	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
)

// Warn logs the warnings about the run, the plugin folders that are not used, unknown characters, and the files of data
// folders that are left out.
func Warn(p *plan.Plan, log *slog.Logger) {
	for _, line := range Warnings(p) {
		log.Warn(line)
	}
	for _, e := range p.Stages.Folders {
		if e.State != catalog.Verified {
			log.Info("plugin folder", "dir", e.Dir, "state", e.State, "reason", e.Reason)
		}
	}
	for _, c := range unknownCharacters(p) {
		log.Info("character not in the vocabulary", "split", c.Split, "char", c.Char, "code", c.Code, "count", c.Count,
			"first", c.First, "as", c.As)
	}
	for i := range p.Stages.Data {
		for _, left := range p.Stages.Data[i].LeftOut { // a warning names only the first
			log.Info("left out of a data folder", "folder", p.Stages.Data[i].Title, "file", left.Name,
				"reason", left.Reason)
		}
	}
}
