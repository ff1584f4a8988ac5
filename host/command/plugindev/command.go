package plugindev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/plugintry"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Options are the arguments of `xtts-host plugins dev`.
type Options struct {
	// Options are those of plugins try. Plugin is the folder that is watched, Out the folder for the results; empty
	// means the one beside Plugin. Empty Stages are those of the plugin.
	plugintry.Options
	Once bool
	// Again has a value for each time that the clip is to be sent again. It may be nil.
	Again <-chan struct{}
}

// session is the work on one plugin.
type session struct {
	Options
	out   io.Writer
	watch *watcher // nil for one turn
	trial *plugintry.Trial
	turns int
	last  *plugintry.Record // what the page shows; nil before the first turn that ends well
}

// Command makes a turn, and one after each change of the plugin's folder, until ctx ends. Once makes one, and returns
// its error.
func Command(ctx context.Context, out io.Writer, o Options) (err error) {
	typed := o.Plugin
	if o, err = o.places(); err != nil {
		return exit.Refused(err)
	}
	s := &session{Options: o, out: out}
	defer func() { s.end() }()
	if o.Once {
		err := s.turn(ctx, nil)
		if err != nil {
			s.showFailure(err)
		}
		return err
	}
	if s.watch, err = watch(ctx, o.Plugin); err != nil {
		return exit.Refused(fmt.Errorf("%s cannot be watched: %w", o.Plugin, err))
	}
	defer s.watch.close()
	visible.Fprintf(out, "%s is watched; %s has the results. Enter sends the clip again, Ctrl-C ends.\n", typed,
		filepath.Join(o.Out, "index.html"))
	show := func(err error) {
		if err != nil && ctx.Err() == nil {
			s.fail(err)
		}
	}
	show(s.turn(ctx, nil))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.watch.changed:
			changed, learned, err := s.watch.take()
			for _, path := range learned {
				fmt.Fprintf(out, "%s is written by each build: after this turn, only a change between builds counts\n",
					visible.Text(path))
			}
			show(err)
			if len(changed) > 0 {
				show(s.turn(ctx, changed))
			}
		case _, ok := <-s.Again:
			if !ok {
				s.Again = nil
				continue
			}
			show(s.again(ctx))
		}
	}
}

// places checks the folders, and names the one for the results.
func (o Options) places() (Options, error) {
	var err error
	if o.Plugin, err = filepath.Abs(o.Plugin); err != nil {
		return o, err
	}
	if _, err := files.At(filepath.Join(o.Plugin, manifest.PluginFile)).Lstat(); err != nil {
		return o, hint.Errorf(
			"name the folder of one plugin; "+hint.Command("plugins new my-plugins/room-echo")+" makes one",
			"%s has no %s", o.Plugin, manifest.PluginFile)
	}
	o.Plugins = cmp.Or(o.Plugins, filepath.Dir(o.Plugin)) // of the link, if it is one
	o.Out = cmp.Or(o.Out, o.Plugin+".dev")
	if o.Plugin, err = filepath.EvalSymlinks(o.Plugin); err != nil {
		return o, err
	}
	if o.Out, err = filepath.Abs(o.Out); err != nil {
		return o, err
	}
	if err := files.At(o.Out).MkdirAll(); err != nil {
		return o, exit.Advise(fmt.Errorf("--out: %w", err), "name a folder that can be written")
	}
	if o.Out, err = filepath.EvalSymlinks(o.Out); err != nil {
		return o, err
	}
	if rel, err := filepath.Rel(o.Plugin, o.Out); err == nil && filepath.IsLocal(rel) {
		return o, hint.Errorf("name a folder beside it", "--out %s is in the folder that is watched", o.Out)
	}
	return o, nil
}

// end ends the processes of the last turn.
func (s *session) end() {
	if s.trial != nil {
		s.trial.Close()
		s.trial = nil
	}
}

// fail shows why a turn has no result.
func (s *session) fail(err error) {
	fmt.Fprintf(s.out, "error: %s\n", s.showFailure(err))
}

// say writes the line of a turn, and further lines below it.
func (s *session) say(line string, more ...string) {
	fmt.Fprintf(s.out, "turn %d: %s\n", s.turns, visible.Text(line))
	for _, l := range more {
		fmt.Fprintf(s.out, "  %s\n", visible.Text(l))
	}
}

// turn builds and starts the plugin, and sends the clip. changed is why.
func (s *session) turn(ctx context.Context, changed []string) error {
	s.turns++
	s.end()
	said := ""
	if len(changed) > 0 {
		said = visible.Short(strings.Join(changed, ", "), 60) + "; "
	}
	entry, err := catalog.Open(s.Plugin)
	if err != nil {
		return exit.Refused(err)
	}
	if command := buildCommand(s.Plugin, entry); command != nil {
		took, err := s.build(ctx, entry, command)
		if err != nil {
			s.say(fmt.Sprintf("%sthe build failed after %.1f s", said, took.Seconds()))
			return exit.Refused(err)
		}
		said += fmt.Sprintf("built in %.1f s, ", took.Seconds())
		if entry, err = catalog.Open(s.Plugin); err != nil {
			return exit.Refused(err)
		}
	}
	began := time.Now()
	o := s.Options.Options
	if len(o.Stages) == 0 && o.Pipeline == "" && entry.Manifest != nil {
		for _, stage := range entry.Manifest.Stages {
			o.Stages = append(o.Stages, entry.Manifest.ID+"/"+stage.Name)
		}
	}
	if s.trial, err = plugintry.Open(ctx, o); err != nil {
		s.say(said + "not started")
		return err
	}
	return s.send(ctx, fmt.Sprintf("%sstarted in %.2f s", said, time.Since(began).Seconds()), entry.Name())
}

// patience is how long a build takes without a word.
const patience = 3 * time.Second

// build builds the plugin. What it writes is no source.
func (s *session) build(ctx context.Context, entry catalog.Entry, command []string) (time.Duration, error) {
	if s.watch != nil {
		if entry.Manifest != nil {
			s.watch.ignore(slices.Collect(maps.Values(entry.Manifest.Executable))...)
		}
		s.watch.building(true)
		defer s.watch.building(false)
	}
	began, done := time.Now(), make(chan error, 1)
	go func() { done <- build(ctx, s.Plugin, command, s.Debug != nil) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(patience):
		s.say(strings.Join(command, " ") + " runs ...")
		err = <-done
	}
	return time.Since(began), err
}

// again sends the clip to the processes that run, or makes a turn if there are none.
func (s *session) again(ctx context.Context) error {
	if s.trial == nil {
		return s.turn(ctx, nil)
	}
	entry, err := catalog.Open(s.Plugin)
	if err != nil {
		return err
	}
	s.turns++
	return s.send(ctx, "again", entry.Name())
}

// send sends the clip, writes the results, and says what the stages of the plugin have made of it.
func (s *session) send(ctx context.Context, said, plugin string) error {
	done, err := s.trial.Run(ctx, s.Epoch, s.Step)
	if err != nil {
		s.say(said)
		return err
	}
	e, err := s.trial.Save(s.Out, "", s.Epoch, s.Step, done)
	if err != nil {
		return err
	}
	if err := s.measure(ctx, done, &e); err != nil {
		s.say(said)
		return err
	}
	record := s.trial.Record(e)
	s.last = record
	if err := errors.Join(record.Save(s.Out), savePage(s.Out, s.shown(""))); err != nil {
		return err
	}
	var lines []string
	for _, stage := range e.Stages {
		if stage.Plugin == plugin {
			lines = append(lines, fmt.Sprintf("%s: %.2f ms, %s", stage.Name, stage.Milliseconds, stage.Line()))
		}
	}
	if len(lines) == 1 {
		s.say(said + "; " + lines[0])
		return nil
	}
	s.say(said, lines...)
	return nil
}

// enough is the time for which the clip is sent again, to measure the stages.
const enough = 100 * time.Millisecond

// measure replaces the times of the stages by their medians: the first call of a process also loads and compiles. Under
// a debugger the clip is sent once.
func (s *session) measure(ctx context.Context, done []plugintry.Done, e *plugintry.Epoch) (err error) {
	all := make([][]float64, len(done))
	for began := time.Now(); s.Debug == nil && len(all[0]) < 9 && time.Since(began) < enough; {
		if done, err = s.trial.Run(ctx, s.Epoch, s.Step); err != nil {
			return err
		}
		for i, d := range done {
			all[i] = append(all[i], d.Milliseconds)
		}
	}
	for i, list := range all {
		if len(list) > 0 {
			slices.Sort(list)
			e.Stages[i].Milliseconds = list[len(list)/2]
		}
	}
	return nil
}
