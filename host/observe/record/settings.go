package record

import (
	"regexp"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
)

const (
	maxSettings = 64 << 10
)

// Setting is a line of config.yaml.
type Setting struct {
	Name   string // with hyphens, as the flag
	Value  string // without the quotes of a text
	Origin string // "default", "flag", "bundle", ...
}

// setting finds a setting, also one that names a run, which is a comment.
var setting = regexp.MustCompile(`^(?:# )?([a-z][a-z0-9_]*): (.*?)(?:  # (.+))?$`)

// ReadSettings reads config.yaml line by line: the file of a run has a setting on each, and may have settings that this
// program does not know.
func ReadSettings(path files.Path) (list []Setting, problem string) {
	data, err := path.Read(maxSettings)
	if err != nil {
		return nil, Why(path, err)
	}
	for line := range strings.Lines(string(data)) {
		if m := setting.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			list = append(list, Setting{strings.ReplaceAll(m[1], "_", "-"), strings.Trim(m[2], `"`), m[3]})
		}
	}
	return list, ""
}

// Setting returns the value of a setting, "" if the file does not have it.
func (r *Run) Setting(name string) string {
	value, _ := r.Lookup(name)
	return value
}

// Lookup returns the value of a setting, and whether the file has it.
func (r *Run) Lookup(name string) (value string, ok bool) {
	return lookup(r.Settings, name)
}

func lookup(list []Setting, name string) (value string, ok bool) {
	for _, s := range list {
		if s.Name == name {
			return s.Value, true
		}
	}
	return "", false
}
