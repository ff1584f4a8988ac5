package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"path/filepath"
	"time"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

//go:embed page.html
var source string

var body = template.Must(Template("page", source))

// Write writes the page of a run into its folder.
func Write(folder string) error {
	run, err := record.Open(folder)
	if err != nil {
		return err
	}
	text, err := Of(run, ".", MostMedia, time.Now())
	if err != nil {
		return err
	}
	return Save(filepath.Join(folder, rundir.PageFile), text)
}

// Save replaces a page, completely or not at all. It does not wait for a full disk: a page can be made again.
func Save(path string, text []byte) error {
	return disk.ReplaceNow(path, text)
}

// Try is Write for a run, which needs no page: it warns of an error.
func Try(folder string, warn func(text string, args ...any)) {
	if err := Write(folder); err != nil {
		warn(rundir.PageFile + " is not written: " + err.Error())
	}
}

// Of returns the page of a run with at most so many bytes of sounds and pictures in it. link leads from the page to the
// run folder.
func Of(run *record.Run, link string, media int64, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	v := viewOf(run, link, media, now)
	if err := body.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("page of %s: %w", run.Folder, err)
	}
	return Document("Run "+v.Name+": "+v.Status, template.HTML(b.String()))
}
