package pluginstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
)

const (
	indexFormat = 1
	maxIndex    = 16 << 20 // bytes of an index
	indexName   = "index.json"
)

// Index lists archives. Any static file that is one can be an index.
type Index struct {
	Format  int       `json:"format"`
	Plugins []Offered `json:"plugins"`
}

// Offered is an archive of an index.
type Offered struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Platforms []string `json:"platforms"` // as in an archive
	URL       string   `json:"url"`       // may be relative to that of the index
	SHA256    string   `json:"sha256"`    // hex, of the archive
	Signer    string   `json:"signer,omitempty"`
}

// parseIndex parses an index.
func parseIndex(place string, text []byte) (*Index, error) {
	ix := new(Index)
	err := json.Unmarshal(bytes.TrimSpace(text), ix)
	if err == nil && ix.Format != indexFormat {
		err = fmt.Errorf("format %d, and this host reads %d", ix.Format, indexFormat)
	}
	for i := range ix.Plugins {
		o := &ix.Plugins[i]
		o.SHA256 = strings.ToLower(o.SHA256) // as they are compared
		sum, serr := hex.DecodeString(o.SHA256)
		if err == nil && (o.Name == "" || o.Version == "" || o.URL == "" || serr != nil || len(sum) != 32) {
			err = fmt.Errorf("plugins.%d: name, version, url and sha256 are needed", i)
		}
	}
	if err != nil {
		return nil, hint.Errorf("docs/plugins-share.md, Index, has the format", "%s: not an index of plugins: %w",
			place, err)
	}
	return ix, nil
}

// readIndex reads an index of this machine or of another.
func (d *downloader) readIndex(ctx context.Context, place string) (*Index, error) {
	read := func() ([]byte, error) { return files.Read(place, maxIndex) }
	if isAddress(place) {
		read = func() ([]byte, error) { return d.small(ctx, place, maxIndex) }
	}
	text, err := read()
	if err != nil {
		return nil, exit.Advise(fmt.Errorf("--index: %w", err), "name the file or the https address of an index")
	}
	return parseIndex(place, text)
}

// inIndex finds NAME or NAME@VERSION in an index: without a version, the highest one for this machine.
func (d *downloader) inIndex(ctx context.Context, place, what string) (source, error) {
	ix, err := d.readIndex(ctx, place)
	if err != nil {
		return source{}, err
	}
	name, wanted, _ := strings.Cut(what, "@")
	machine := runtime.GOOS + "_" + runtime.GOARCH
	var best *Offered
	var others []string // that do not run here, or have another version
	for i := range ix.Plugins {
		o := &ix.Plugins[i]
		switch {
		case o.Name != name:
		case wanted != "" && o.Version != wanted:
			others = append(others, o.Version)
		case !slices.Contains(o.Platforms, machine) && !slices.Contains(o.Platforms, archive.AnyPlatform):
			others = append(others, o.Version+" for "+strings.Join(o.Platforms, " and "))
		case best == nil || semver.Compare("v"+o.Version, "v"+best.Version) > 0:
			best = o
		}
	}
	if best == nil && others != nil {
		return source{}, hint.Errorf("the index has "+strings.Join(others, ", "), "%s has no %s for %s", place, what,
			machine)
	}
	if best == nil {
		return source{}, hint.Errorf("the index has "+cmp.Or(strings.Join(ix.names(), ", "), "no plugins"),
			"%s has no plugin %s", place, name)
	}
	return best.source(place)
}

// names are those of the plugins, each once.
func (ix *Index) names() (names []string) {
	for _, o := range ix.Plugins {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// source is where the archive is. An address that is not whole belongs to the place of the index.
func (o *Offered) source(index string) (source, error) {
	s := source{place: o.URL, name: o.Name, version: o.Version, sum: o.SHA256}
	if o.Signer != "" {
		key, err := signature.ParseKey(o.Signer)
		if err != nil {
			return s, fmt.Errorf("%s: signer of %s: %w", index, o.Name, err)
		}
		s.signer = &key
	}
	if isAddress(o.URL) {
		return s, nil
	}
	if !isAddress(index) {
		name, err := url.PathUnescape(o.URL)
		if err != nil || !filepath.IsLocal(name) {
			return s, hint.Errorf("ask who keeps the index", "%s: url of %s: %q leads out of its folder", index, o.Name,
				o.URL)
		}
		s.place = filepath.Join(filepath.Dir(index), name)
		return s, nil
	}
	base, err := url.Parse(index)
	if err == nil {
		base, err = base.Parse(o.URL)
	}
	if err != nil {
		return s, hint.Errorf("ask who keeps the index", "%s: url of %s: %w", index, o.Name, err)
	}
	s.place = base.String()
	return s, nil
}

// MakeIndex writes the index of the archives in a folder into it: index.json.
func MakeIndex(ctx context.Context, out io.Writer, folder string) error {
	entries, err := files.In(folder).ReadDir()
	if err != nil {
		return exit.Refused(exit.Advise(err, "name the folder that has the archives"))
	}
	ix := Index{Format: indexFormat, Plugins: []Offered{}}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || e.IsDir() {
			continue
		}
		o, err := offer(ctx, folder, e.Name())
		if err != nil {
			return exit.Refused(err)
		}
		ix.Plugins = append(ix.Plugins, o)
	}
	if len(ix.Plugins) == 0 {
		return exit.Usage(fmt.Errorf("%s has no archive: none has a name that ends with %s", folder, suffix),
			"name the folder that has the archives")
	}
	text, err := json.MarshalIndent(ix, "", "  ")
	if err != nil {
		return err
	}
	at := files.In(folder, indexName)
	if err := at.Replace(append(text, '\n')); err != nil {
		return err
	}
	_, err = visible.Fprintf(out, "created  %s: %s\n", at, units.Count(len(ix.Plugins), "archive"))
	return err
}

// offer describes an archive for an index.
func offer(ctx context.Context, folder, name string) (Offered, error) {
	a, err := new(downloader).get(ctx, source{place: filepath.Join(folder, name)})
	if err != nil {
		return Offered{}, err
	}
	o := Offered{
		Name: a.content.Index.Name, Version: a.content.Index.Version, Platforms: a.content.Index.Platforms,
		URL: url.PathEscape(name), SHA256: a.content.Sum,
	}
	if key, ok := signature.Stated(a.origin.Signature); ok {
		if err = a.verify(key); err != nil {
			err = hint.Errorf("sign the archive again", "%s: %w", a.place+signature.Suffix, err)
		}
		o.Signer = key.String()
	}
	return o, errors.Join(err, a.done())
}
