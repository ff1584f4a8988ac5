package inspect

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// PluginList is the content of a folder of plugins. As JSON it is the output of `xtts-host plugins list --json`.
type PluginList struct {
	Version int            `json:"version"`
	Plugins []ListedPlugin `json:"plugins"`
}

// ListedPlugin is a folder below it. Version and Stages are empty for one whose manifest cannot be read.
type ListedPlugin struct {
	Name    string `json:"name"`
	Folder  string `json:"folder"`
	Version string `json:"version,omitempty"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Archive is the hex SHA-256 of the archive that it was installed from, and Signer the known key that has signed
	// it. Changed says whether its files have changed since.
	Archive string           `json:"archive,omitempty"`
	Signer  string           `json:"signer,omitempty"`
	Changed bool             `json:"changed,omitempty"`
	Stages  []manifest.Stage `json:"stages"`
}

func listOf(entries []catalog.Entry, keys *signature.Keys) PluginList {
	list := PluginList{Version: 1, Plugins: []ListedPlugin{}}
	for _, e := range entries {
		p := ListedPlugin{
			Name: e.Name(), Folder: e.Dir, State: fmt.Sprint(e.State), Reason: e.Reason, Hint: e.Hint,
			Stages: []manifest.Stage{},
		}
		if e.Manifest != nil {
			p.Version, p.Stages = e.Manifest.Version, e.Manifest.Stages
		}
		if t := keys.Examine(e.Name(), e.Dir); e.State != catalog.Skipped {
			p.Changed = t.Changed != nil
			if t.Installed != nil {
				p.Archive = t.Installed.Sum
			}
			if t.Signer != nil {
				p.Signer = t.Signer.String()
			}
		}
		list.Plugins = append(list.Plugins, p)
	}
	return list
}

// ErrUnusable means that a folder has plugins that cannot be started.
var ErrUnusable = exit.New(exit.StatusPlugin, "cannot be started")

// unusable is the error for the plugins that cannot be started, after they were listed.
func unusable(entries []catalog.Entry) error {
	var names []string
	for _, e := range entries {
		if !e.Startable() && e.State != catalog.Skipped {
			names = append(names, e.Name())
		}
	}
	if names == nil {
		return nil
	}
	return hint.Errorf("the list says why, and what to do", "%s: %s %w", units.Count(len(names), "plugin"),
		strings.Join(names, ", "), ErrUnusable)
}

// Plugins describes the content of a folder of plugins. It starts nothing. asJSON writes a PluginList as JSON instead
// of text. The error wraps ErrUnusable if a plugin cannot be started.
func Plugins(out io.Writer, dir string, asJSON bool) error {
	entries, err := catalog.Scan(dir)
	if err != nil {
		return exit.Refused(exit.Advise(err, "name the folder that has a folder for each plugin"))
	}
	keys, err := signature.LoadKeys()
	if err != nil {
		return exit.Refused(err)
	}
	if asJSON {
		return errors.Join(report.JSON(out, listOf(entries, keys)), unusable(entries))
	}
	if len(entries) == 0 {
		visible.Fprintf(out, "%s: no folder in it\n", dir)
	}
	width := longestName(entries)
	var others []string
	for _, e := range entries {
		if e.State == catalog.Skipped {
			others = append(others, visible.Text(e.Name()))
			continue
		}
		version := ""
		if e.Manifest != nil {
			version = e.Manifest.Version
		}
		state := strings.TrimSpace(fmt.Sprintf("%s %s", visible.Text(version), e.State))
		if e.Reason != "" {
			state += ": " + visible.Text(e.Reason)
		}
		if t := keys.Examine(e.Name(), e.Dir); t.Installed != nil || t.Changed != nil {
			state += "; " + t.Words()
		}
		fmt.Fprintf(out, "%-*s  %s\n", width, visible.Text(e.Name()), state)
		if e.Hint != "" {
			fmt.Fprintf(out, "  hint: %s\n", visible.Text(e.Hint))
		}
		if e.Manifest == nil {
			continue
		}
		for _, s := range e.Manifest.Stages {
			fmt.Fprintf(out, "  %-*s  %s: %s -> %s\n", width-2, s.Name, s.Kind, ports(s.Inputs), ports(s.Outputs))
			for _, name := range s.DataNames() {
				fmt.Fprintf(out, "  %-*s  %s\n", width-2, "", dataFolder(name, s.Data[name]))
			}
		}
	}
	if others != nil {
		visible.Fprintf(out, "other folders, without a plugin.json: %s\n", strings.Join(others, ", "))
	}
	return unusable(entries)
}

// longestName is the width of the names of plugins, and of their stages, which are indented.
func longestName(entries []catalog.Entry) (width int) {
	for _, e := range entries {
		if e.State == catalog.Skipped {
			continue
		}
		width = max(width, utf8.RuneCountInString(visible.Text(e.Name())))
		if e.Manifest != nil {
			for _, s := range e.Manifest.Stages {
				width = max(width, 2+len(s.Name))
			}
		}
	}
	return width
}

// dataFolder describes a folder that a stage reads.
func dataFolder(name string, d manifest.DataFolder) string {
	text := fmt.Sprintf("data folder %s (%s", name, d.Kind)
	if d.Optional {
		text += ", optional"
	}
	text += ")"
	if d.Description != "" {
		text += ": " + visible.Text(d.Description)
	}
	return text
}

func ports(specs []manifest.TensorSpec) string {
	parts := make([]string, len(specs))
	for i, s := range specs {
		parts[i] = s.String()
	}
	return strings.Join(parts, ", ")
}
