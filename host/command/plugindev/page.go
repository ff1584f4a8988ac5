package plugindev

import (
	_ "embed"
	"encoding/json"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/plugintry"
)

// page shows the last turn, and looks for another one every second. It gets what it shows from a script beside it: a
// page of a file system may read nothing else.
//
//go:embed page.html
var page []byte

// savePage writes the page, and the script with the turn.
func savePage(folder string, turn int, plugin string, record *plugintry.Record) error {
	data, err := json.Marshal(map[string]any{"turn": turn, "plugin": plugin, "record": record}) // HTML is escaped
	if err != nil {
		return err
	}
	script := append(append([]byte("show("), visible.JSON(data)...), ");\n"...)
	if err := disk.ReplaceNow(filepath.Join(folder, "index.html"), page); err != nil {
		return err
	}
	return disk.ReplaceNow(filepath.Join(folder, "turn.js"), script)
}
