package tensorboard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
)

// file is an event file, by its name.
type file struct {
	number int64
	media  bool
	step   int64 // of the evaluation whose media it has
}

// TensorBoard reads each file whose name has "tfevents". Other readers want a number after it.
var fileName = regexp.MustCompile(`^events\.out\.tfevents\.(\d{10})\.xtts-host\.(steps|media\.(step-\d+))$`)

func (f file) String() string {
	kind := "steps"
	if f.media {
		kind = "media." + rundir.Step(f.step)
	}
	return fmt.Sprintf("events.out.tfevents.%010d.xtts-host.%s", f.number, kind)
}

// parseFile reads a name that String has written.
func parseFile(name string) (f file, ok bool) {
	m := fileName.FindStringSubmatch(name)
	if m == nil {
		return f, false
	}
	f.number, _ = strconv.ParseInt(m[1], 10, 64) // ten digits are a number
	if f.media = m[3] != ""; f.media {
		if f.step, ok = rundir.ParseStep(m[3]); !ok {
			return f, false
		}
	}
	return f, true
}

// list returns the event files of a folder in the order of their numbers. Other files are not those of the run.
func list(dir files.Path) (all []file, err error) {
	entries, err := dir.ReadDir()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if f, ok := parseFile(e.Name()); ok && e.Type().IsRegular() {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.String(), b.String()) })
	return all, err
}

// there is what the files have when they have been cut back.
type there struct {
	next   int64                // the number of the next file
	media  map[int64]files.Path // files of media, by the step of their evaluation
	spoken int64                // the last evaluation whose texts were spoken
}

// cut removes from the files what came after the steps of a checkpoint, and a record that is not complete. A run
// that begins has nothing to keep.
func cut(dir files.Path, step, evaluated int64) (*there, error) {
	all, err := list(dir)
	have := &there{next: 1, media: map[int64]files.Path{}}
	for _, f := range all {
		if err != nil {
			break
		}
		have.next = f.number + 1
		switch path := dir.Join(f.String()); {
		case step == 0 || f.media && f.step > evaluated:
			err = path.Remove()
		case f.media:
			have.media[f.step] = path
		default:
			err = have.cutFile(path, step, evaluated)
		}
	}
	return have, err
}

// cutFile cuts one file off at its first record that is to go: records are in the order of their steps, and those of an
// evaluation follow those of its step. A file without values goes.
func (t *there) cutFile(path files.Path, step, evaluated int64) (err error) {
	f, err := path.Append()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	end, values, r := int64(0), false, bufio.NewReader(f)
	for buf := []byte(nil); ; {
		data, err := readRecord(r, buf)
		if err == io.EOF || errors.Is(err, errTorn) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		e, ok := parse(data)
		if !ok || e.tag != "" && e.step > step || ofEvaluation(e.tag) && e.step > evaluated {
			break
		}
		if strings.HasPrefix(e.tag, spokenGroup+"/") {
			t.spoken = e.step
		}
		values = values || e.tag != ""
		end += int64(headBytes + len(data) + tailBytes)
		buf = data[:0]
	}
	switch {
	case !values:
		return path.Remove()
	case end < f.Size():
		return f.Truncate(end)
	}
	return nil
}
