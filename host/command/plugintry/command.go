package plugintry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/overwrite"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
)

// Options are the arguments of `xtts-host plugins try`.
type Options struct {
	Stages      []string // "stage" or "plugin/stage", or instances of Pipeline; all of Pipeline if empty
	Pipeline    string   // file of settings with a pipeline, or empty: that of the bundle
	Clip        string   // file
	Out         string   // file, or folder
	Epoch, Step int      // the first to try, counted from 1
	Count       int      // epochs to try
	Seed        int64
	Values      map[string]any    // of the stages' configuration
	Data        map[string]string // data folders by NAME or INSTANCE.NAME
	Plugins     string            // folder
	Plugin      string            // folder of a plugin that takes the place of the one in Plugins, or empty
	Graph       string
	CacheDir    string
	ORTLib      string
	Sandbox     sandbox.Mode
	Debug       func(line string) // as of supervise.Config
	// StartTimeout and Timeout bound the start of a plugin, and a call; 0 is the usual time.
	StartTimeout, Timeout time.Duration

	Started func()       // called before the clip is sent; may be nil
	Log     *slog.Logger // of the plugins; nil discards it
}

func (o *Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// Command sends the clip through the stages, once for each epoch, writes the results, and describes them on out.
func Command(ctx context.Context, out io.Writer, o Options) error {
	r, err := resolve(o)
	if err != nil {
		return err
	}
	var last []shown // what the file has of the last stage
	folder := isFolder(o.Out)
	if !folder {
		if last, err = r.way.choose(strings.ToLower(filepath.Ext(o.Out))); err != nil {
			return exit.Refused(err)
		}
	}
	if err := checkNames(o, r.way, last); err != nil {
		return err
	}
	t, err := r.start(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if o.Started != nil {
		o.Started()
	}
	var epochs []Epoch
	for n := range o.Count {
		epoch := o.Epoch + n
		done, err := t.Run(ctx, epoch, o.Step)
		if err != nil {
			return err
		}
		if folder {
			e, err := t.Save(o.Out, below(o, epoch), epoch, o.Step, done)
			if err != nil {
				return err
			}
			epochs = append(epochs, e)
			for _, s := range e.Stages {
				visible.Fprintf(out, "%s, epoch %d: %s\n", s.Name, epoch, s.line(o.Out))
			}
			continue
		}
		final := done[len(done)-1]
		for _, s := range last {
			file := name(o, epoch, s, len(last) > 1)
			text, err := t.write(final.output(s.port), file)
			if err != nil {
				return err
			}
			visible.Fprintf(out, "%s, epoch %d: %s; %s%s\n", final.Name, epoch, file, text, final.why())
		}
	}
	if folder {
		return t.Record(epochs...).Save(o.Out)
	}
	return nil
}

// isFolder reports whether --out names a folder: it is one, or ends with a slash.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return strings.HasSuffix(path, "/") || err == nil && info.IsDir()
}

// checkNames refuses to write over the clip or the pipeline. last are the outputs that a single file has.
func checkNames(o Options, w *way, last []shown) error {
	var names []string
	if last == nil {
		for _, name := range []string{beforeSound, beforePicture, drawsFile} {
			names = append(names, filepath.Join(o.Out, name))
		}
	}
	for epoch := o.Epoch; epoch < o.Epoch+o.Count; epoch++ {
		for _, s := range last {
			names = append(names, name(o, epoch, s, len(last) > 1))
		}
		for n, in := range w.resolved.Instances {
			all := outputsOf(in)
			for _, s := range all {
				if last == nil {
					stem := filepath.Join(o.Out, below(o, epoch), stemOf(n, in.Name, s, len(all) > 1))
					names = append(names, stem+".wav", stem+".png")
				}
			}
		}
	}
	var files []overwrite.Place
	for _, name := range names {
		files = append(files, overwrite.Place{Flag: "--out", Path: name})
	}
	in := []overwrite.Place{{Flag: "--clip", Path: o.Clip}}
	if o.Pipeline != "" {
		in = append(in, overwrite.Place{Flag: "--pipeline", Path: o.Pipeline})
	}
	return exit.Refused(overwrite.Check(files, in))
}

// below is the folder in --out of the stages' files of an epoch, or empty.
func below(o Options, epoch int) string {
	if o.Count == 1 {
		return ""
	}
	return fmt.Sprintf("epoch-%d", epoch)
}

// name is the file of one epoch and output.
func name(o Options, epoch int, s shown, several bool) string {
	ending := filepath.Ext(o.Out)
	stem := strings.TrimSuffix(o.Out, ending)
	if several {
		stem += "-" + s.port
	}
	if o.Count > 1 {
		stem += fmt.Sprintf("-%d", epoch)
	}
	return stem + ending
}
