// Package retain removes the speech and the pictures of old evaluations from a run folder, as --keep-media says:
//
//	bus.Offer("keep-media", retain.New(retain.Config{Dir: run, Keep: 5}), warn)
//
// The newest evaluations keep theirs, and so does the best one. It removes only files with the names that a run gives,
// in folders with such names, and no folder that has anything else.
package retain

import (
	"errors"
	"regexp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Old returns those of some steps, in order, that are neither among the last keep ones nor the best. 0 keeps all.
func Old(steps []int64, keep int, best int64) (old []int64) {
	if keep <= 0 || len(steps) <= keep {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(steps[:len(steps)-keep]), func(step int64) bool { return step == best })
}

// media are the folders of a run whose folders step-N have media, and the names of these.
var media = map[string]*regexp.Regexp{
	rundir.SamplesFolder: regexp.MustCompile(`^(clip-)?[1-9]\d*\.(wav|png)$`),
	rundir.ProbesFolder:  regexp.MustCompile(`\.png$`),
}

// Config configures a Keeper.
type Config struct {
	Dir  string // the run folder
	Keep int    // evaluations, at least 1
	Best int64  // the step of the best evaluation so far, 0 for none
}

// Keeper removes what is old after each evaluation. It is a best-effort sink.
type Keeper struct{ Config }

// New returns a Keeper.
func New(c Config) *Keeper { return &Keeper{c} }

// Take removes the media of the evaluations that are old after the last one.
func (k *Keeper) Take(events []event.Event) error {
	evaluated := false
	for _, e := range events {
		switch e := e.(type) {
		case *event.Evaluation:
			if e.Best {
				k.Best = e.Step
			}
		case *event.Spoken, *event.Probed:
			evaluated = true
		}
	}
	if !evaluated {
		return nil
	}
	var err error
	for folder, names := range media {
		err = errors.Join(err, k.sweep(files.In(k.Dir, folder), names))
	}
	return err
}

// Close does nothing.
func (k *Keeper) Close() error { return nil }

// sweep removes what is old in a folder of folders of steps.
func (k *Keeper) sweep(all files.Path, names *regexp.Regexp) error {
	steps, err := rundir.Steps(all)
	for _, step := range Old(steps, k.Keep, k.Best) {
		err = errors.Join(err, empty(all.Join(rundir.Step(step)), names))
	}
	return err
}

// empty removes the media in a folder, and the folder if it has nothing else.
func empty(dir files.Path, names *regexp.Regexp) error {
	entries, err := dir.ReadDir()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && names.MatchString(e.Name()) {
			err = errors.Join(err, dir.Join(e.Name()).Remove())
		}
	}
	if rerr := dir.Remove(); !errors.Is(rerr, unix.ENOTEMPTY) && !errors.Is(rerr, unix.EEXIST) {
		err = errors.Join(err, rerr)
	}
	return err
}
