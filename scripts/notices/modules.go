package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are the packages whose dependencies are distributed when a build is.
var programs = []string{"./cmd/xtts-host", "./plugins/augment", "./plugins/features", "./plugins/inference"}

// architectures are the supported ones.
var architectures = []string{"amd64", "arm64"}

// module is a linked Go module.
type module struct {
	Path, Version, Dir string
	folders            map[string]bool // of its linked packages, and their parents up to Dir
	texts              []text
}

// text is a license file of a module.
type text struct {
	name    string // relative to the module
	content string
}

// linked returns the modules of all builds with their license files, sorted by path.
func linked() ([]*module, error) {
	found := map[string]*module{}
	for _, arch := range architectures {
		if err := list(arch, found); err != nil {
			return nil, err
		}
	}
	modules := slices.SortedFunc(maps.Values(found), func(a, b *module) int { return cmp.Compare(a.Path, b.Path) })
	for _, m := range modules {
		var err error
		if m.texts, err = texts(m.Dir, m.folders); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	license, err := os.ReadFile("host/observe/dashboard/static/uplot.LICENSE")
	if err != nil {
		return nil, err
	}
	return append(modules, &module{Path: "uPlot", Version: "1.6.32", texts: []text{{"LICENSE", string(license)}}}), nil
}

// list adds the modules of one build. It compiles nothing.
func list(arch string, found map[string]*module) error {
	command := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Module"}, programs...)...)
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=1")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("go list for %s: %w", arch, err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{}
			}
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if p.Module == nil || p.Module.Main || p.Module.Replace != nil { // shared is a module of this repository
			continue // the standard library, this repository
		}
		m := found[p.Module.Path]
		if m == nil {
			m = &module{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir, folders: map[string]bool{}}
			found[m.Path] = m
		}
		for folder := p.Dir; !m.folders[folder] && strings.HasPrefix(folder, m.Dir); folder = filepath.Dir(folder) {
			m.folders[folder] = true
		}
	}
}

var licenseFile = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|patents)([.-].*)?$|-licen[cs]e$`)

// copyright is the comment of a C header that names an owner. A header of another project has its license there.
var copyright = regexp.MustCompile(
	`(?s)/\*((?:[^*]|\*[^/])*?Copyright.*?)\*/|((?m:^//[^\n]*Copyright[^\n]*\n(?:^//[^\n]*\n)*))`)

// texts returns the license files in the folders of linked packages and in THIRD_PARTY_LICENSES, and the notices of C
// headers. At least one must be a license.
func texts(dir string, folders map[string]bool) ([]text, error) {
	var list []text
	for _, folder := range append(slices.Sorted(maps.Keys(folders)), filepath.Join(dir, "THIRD_PARTY_LICENSES")) {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			header := filepath.Ext(e.Name()) == ".h"
			if !e.Type().IsRegular() ||
				!header && (!licenseFile.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go") {
				continue
			}
			data, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				return nil, err
			}
			if header {
				data = copyright.Find(data)
			}
			if len(data) == 0 {
				continue
			}
			name, err := filepath.Rel(dir, filepath.Join(folder, e.Name()))
			if err != nil {
				return nil, err
			}
			list = append(list, text{filepath.ToSlash(name), normal(string(data))})
		}
	}
	if !slices.ContainsFunc(list, func(t text) bool { return kind(t.content) != "" }) {
		return nil, errors.New("no license that is known: add its wording to kinds in scripts/notices/license.go")
	}
	return list, nil
}

// normal makes equal texts equal: modules differ in line ends and trailing spaces.
func normal(content string) string {
	lines := strings.Split(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
