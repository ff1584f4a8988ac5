package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
)

// started starts ranks that are a script, and returns what Start and Wait have, and the errors of those that ended.
func started(t *testing.T, ranks int, script string) (f Found, ended []string, err error) {
	t.Helper()
	all := make(chan error, ranks)
	f, c, err := Start(ranks, "/bin/sh", []string{"-c", script}, func(err error) { all <- err })
	if err != nil {
		t.Fatal(err)
	}
	err = c.Wait()
	for len(all) > 0 {
		one := <-all
		if exit.Code(one) != exit.StatusRank {
			t.Errorf("exit status %d: %v", exit.Code(one), one)
		}
		ended = append(ended, one.Error())
	}
	return f, ended, err
}

// TestStart: every rank but the first is started with the variables by which Find knows it.
func TestStart(t *testing.T) {
	dir := t.TempDir()
	f, ended, err := started(t, 3, "env > '"+dir+"'/$RANK")
	if err != nil || len(ended) > 0 {
		t.Fatal(err, ended)
	}
	if f.Rank != 0 || f.Size != 3 || f.LocalSize != 3 || len(f.Secret) < minSecret {
		t.Errorf("%+v", f)
	}
	for rank := 1; rank < 3; rank++ {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(rank)))
		if err != nil {
			t.Fatal(err)
		}
		own, err := Find(variables(string(text)))
		if err != nil || own.Rank != rank || own.Local != rank || own.Size != 3 || own.LocalSize != 3 ||
			own.Address != f.Address || own.Secret != f.Secret {
			t.Errorf("rank %d finds %+v, %v; rank 0 is %+v", rank, own, err, f)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%v", left)
	}
}

// TestChildFails: the end of a rank is reported with what it has said last; that of a signal also by Wait.
func TestChildFails(t *testing.T) {
	_, ended, err := started(t, 2, "echo no GPU >&2; exit 3")
	if want := "rank 1 ended: exit status 3; it said: no GPU"; len(ended) != 1 || ended[0] != want || err != nil {
		t.Errorf("%q, %v", ended, err)
	}
	_, ended, err = started(t, 2, "echo crash >&2; kill -SEGV $$")
	if len(ended) != 1 || err == nil || !strings.Contains(err.Error(), "it said: crash") {
		t.Errorf("%q, %v", ended, err)
	}
}

// TestLongOutput: of what a rank says, the last lines stay.
func TestLongOutput(t *testing.T) {
	last := new(tail)
	for i := range 2000 {
		fmt.Fprintf(last, "line %d\n", i)
	}
	text := last.String()
	if len(text) > tailBytes || !strings.HasPrefix(text, "line ") || !strings.HasSuffix(text, "line 1999\n") {
		t.Errorf("%d bytes: %.40q", len(text), text)
	}
}

// TestSlowChild: a rank that does not end after rank 0 is killed.
func TestSlowChild(t *testing.T) {
	defer func(d time.Duration) { lastWords = d }(lastWords)
	lastWords = 100 * time.Millisecond
	began := time.Now()
	if _, ended, _ := started(t, 2, "exec sleep 60"); len(ended) != 1 || time.Since(began) > 20*time.Second {
		t.Errorf("%q after %v", ended, time.Since(began))
	}
}
