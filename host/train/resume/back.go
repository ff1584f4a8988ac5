package resume

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Back is the way back of a run that diverged: to a checkpoint, or to its start, with a lower learning rate.
type Back struct {
	Folder string // of the run
	// Checkpoint is nil for the start.
	Checkpoint *checkpoint.Checkpoint
	Now        map[string]string // as in Config
	Player     string            // whose learning rate --lr is
	LR, MinLR  float64           // --lr and --min-lr
	Usual      float64           // the learning rate of the bundle
	Init       string            // --init, which the settings in the folder of a run do not give to another run
	// LRFactor and WeightDecayOf report whether the run has these flags.
	LRFactor, WeightDecayOf bool
}

// Command is the command that goes back. It works as it is.
func (b Back) Command() string {
	flags, lr := "--lr "+strconv.FormatFloat(b.lr(), 'g', -1, 64), b.lr()
	allow := []string{"lr"}
	if b.MinLR > lr {
		flags, allow = flags+" --min-lr 0", append(allow, "min-lr")
	}
	if b.Checkpoint == nil {
		if b.Init != "" {
			flags += " --init " + hint.Path(b.Init)
		}
		return hint.Command(fmt.Sprintf("--config %s %s --run-dir %s",
			hint.Path(filepath.Join(b.Folder, rundir.SettingsFile)), flags, hint.Path(unused(b.Folder))))
	}
	saved := b.Checkpoint.State
	was, _ := saved.ScheduleOf(b.Player)
	same := was.BaseLR == lr
	if same { // so there is nothing to allow
		allow = allow[1:]
	}
	for _, d := range Differences(saved.Hashes, b.Now) {
		name := d.setting()
		if name == "groups" && !grouped(saved.Hashes) && (b.LRFactor || b.WeightDecayOf) {
			continue // they came after the checkpoint, and are taken back
		}
		if same && (d.Name == "lr" || d.Name == "lr/"+b.Player) {
			continue // it is that of the checkpoint again
		}
		if !slices.Contains(allow, name) {
			allow = append(allow, name)
		}
	}
	if !grouped(saved.Hashes) && grouped(b.Now) {
		if b.LRFactor {
			flags += " --lr-factor ''"
		}
		if b.WeightDecayOf {
			flags += " --weight-decay-of ''"
		}
	}
	at := fmt.Sprintf("%s@%d", b.Folder, saved.Step)
	if len(allow) > 0 {
		flags = "--allow " + strings.Join(allow, ",") + " " + flags
	}
	return hint.Command(fmt.Sprintf("--resume %s %s", hint.Path(at), flags))
}

// lr is a learning rate below that of the run: that of the checkpoint if the run has raised it since, that of the
// bundle if it is lower, or a tenth.
func (b Back) lr() float64 {
	if b.Checkpoint != nil {
		if was, _ := b.Checkpoint.State.ScheduleOf(b.Player); was.BaseLR > 0 && was.BaseLR < b.LR {
			return was.BaseLR
		}
	}
	if b.Usual > 0 && b.Usual < b.LR {
		return b.Usual
	}
	lr, _ := strconv.ParseFloat(strconv.FormatFloat(b.LR/10, 'g', 3, 64), 64) // as a person would write it
	return lr
}

// grouped reports whether parameters have values of their own.
func grouped(hashes map[string]string) bool {
	for name := range Values(hashes) {
		if (Difference{Name: name}).setting() == "groups" {
			return true
		}
	}
	return false
}

// unused names a folder beside one, which is not there yet.
func unused(dir string) string {
	for n := 2; ; n++ {
		name := fmt.Sprintf("%s-%d", filepath.Clean(dir), n)
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}
