package plugindev

import (
	_ "embed"
	"encoding/json"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/plugintry"
)

// page shows the last turn, and looks for another one every second. It gets what it shows from a script beside it: a
// page of a file system may read nothing else.
//
//go:embed page.html
var page []byte

// shown is the content of the page: the last turn that ended well, and why a later one did not.
type shown struct {
	Turn    int               `json:"turn"`
	Plugin  string            `json:"plugin"`
	Record  *plugintry.Record `json:"record"` // nil before the first such turn
	Failure string            `json:"failure,omitempty"`
}

func (s *session) shown(failure string) shown {
	return shown{Turn: s.turns, Plugin: filepath.Base(s.Plugin), Record: s.last, Failure: failure}
}

// showFailure has the page say why a turn failed, and returns the text, with the hint. A folder that cannot be written
// to is named by the next turn that ends well.
func (s *session) showFailure(err error) string {
	text := exit.Text(err)
	if advice := exit.Hint(err); advice != "" {
		text += "\nhint: " + advice
	}
	if files.At(s.Out).MkdirAll() == nil {
		_ = savePage(s.Out, s.shown(text))
	}
	return text
}

// savePage writes the page, and the script with what it shows.
func savePage(folder string, content shown) error {
	data, err := json.Marshal(content) // HTML is escaped
	if err != nil {
		return err
	}
	script := append(append([]byte("show("), visible.JSON(data)...), ");\n"...)
	if err := disk.ReplaceNow(filepath.Join(folder, "index.html"), page); err != nil {
		return err
	}
	return disk.ReplaceNow(filepath.Join(folder, "turn.js"), script)
}
