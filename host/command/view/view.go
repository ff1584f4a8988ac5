// Package view implements the command `view`: it serves a page about runs, finished ones and others, from their
// folders. It writes nothing there.
package view

import (
	"io"
	"os"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/address"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/runs"
	"github.com/xtts-host/xtts-host/host/observe/dashboard"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Flag names the address.
var Flag = address.Flag{Name: "--address", Example: dashboard.Flag.Example}

// mostRuns bounds the runs of a page.
const mostRuns = 200

// Run serves the page of the runs in folders until stop is closed.
func Run(out io.Writer, folders []string, at string, stop <-chan struct{}) error {
	list, err := runs.Folders(folders)
	if err != nil {
		return exit.Refused(err)
	}
	switch {
	case len(list) == 0:
		where := "in this folder"
		if len(folders) > 1 {
			where = "in these folders"
		}
		return exit.Refused(hint.Errorf("name the folder of a run, which contains metrics.jsonl, or one that has such "+
			"folders", "%s: there is no run %s", strings.Join(folders, ", "), where))
	case len(list) > mostRuns:
		return exit.Refused(hint.Errorf("name some of them", "%s are too many for one page, which shows %d",
			units.Count(len(list), "run"), mostRuns))
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	server, err := dashboard.Listen(dashboard.Config{
		Flag: Flag, Address: at, Runs: list, Program: program, Asks: synthesize.Asks,
		Warn: func(text string) { visible.Fprintf(out, "warning: %s\n", text) },
	})
	if err != nil {
		return exit.Refused(err)
	}
	if _, err := visible.Fprintf(out, "%s: open %s; Ctrl-C ends it\n", units.Count(len(list), "run"),
		server.URL()); err != nil {
		server.Close()
		return err
	}
	<-stop
	return server.Close()
}
