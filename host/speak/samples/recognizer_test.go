package samples

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func TestSplit(t *testing.T) {
	for command, want := range map[string][]string{
		"a  b":              {"a", "b"},
		`a 'b c' "d 'e" ""`: {"a", "b c", "d 'e", ""},
		`a\ b $HOME *`:      {"a b", "$HOME", "*"},
		`'a\b' "c\"d"`:      {`a\b`, `c"d`},
	} {
		if got, err := split(command); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", command, got, err)
		}
	}
	for _, command := range []string{`a "b`, `a \`, "transcribe", "no-such-command {wav}", "{wav}"} {
		if _, err := NewRecognizer(command); err == nil || hint.Of(err) == "" {
			t.Errorf("%s: %v", command, err)
		}
	}
	if r, err := NewRecognizer(""); r != nil || err != nil {
		t.Error(r, err)
	}
}

// TestRecognize: what a command prints is compared with the text. One that fails warns once, and nothing else is
// missing.
func TestRecognize(t *testing.T) {
	r := newRun(t)
	script := filepath.Join(t.TempDir(), "a b.sh")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+text+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	r.List = must(Read(r.write(t, "a.txt", "hello there."), r.bundle, r.data, texts.Rules{}))
	write("exit 1")
	r.Recognizer = must(NewRecognizer("'" + script + "' {wav}"))
	s := must(Open(t.Context(), r.Config))
	defer s.Close()
	rate := func(step int64) (float64, bool) {
		t.Helper()
		e := s.Speak(step)
		if _, ok := Mean(e, measured.Repeated); !ok || e.Incomplete {
			t.Errorf("%+v", e)
		}
		return Mean(e, measured.WER)
	}
	write(`test -f "$1" && echo hello here`)
	if got, ok := rate(1); got != 0.5 || !ok || r.log.Len() > 0 {
		t.Errorf("%g, %v, log: %s", got, ok, &r.log)
	}
	write("echo no model >&2; exit 3")
	for step := range int64(2) {
		if _, ok := rate(step + 2); ok {
			t.Error("a command that fails has a rate")
		}
	}
	if text := r.log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "no model") {
		t.Errorf("log: %s", text)
	}
}

// TestRecognizerIsBounded: a command that does not end, or that prints without an end, ends with what it has started,
// and an evaluation waits for it once.
func TestRecognizerIsBounded(t *testing.T) {
	r := newRun(t)
	dir := t.TempDir()
	script, asked := filepath.Join(dir, "hear.sh"), filepath.Join(dir, "asked")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+text+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write("yes")
	r.Recognizer = must(NewRecognizer(script + " {wav}"))
	if _, err := r.Recognizer.recognize(t.Context(), "a.wav"); !errors.Is(err, errLong) {
		t.Errorf("without an end: %v", err)
	}
	r.List = must(Read(r.write(t, "a.txt", "hello there.\ngood morning."), r.bundle, r.data, texts.Rules{}))
	s := must(Open(t.Context(), r.Config))
	defer s.Close()
	write("sleep 60 & echo $! >>" + asked + "; wait")
	r.Recognizer.timeout = 500 * time.Millisecond
	for step := range int64(2) {
		if e := s.Speak(step + 1); len(e.Utterances) != 2 || e.Incomplete {
			t.Errorf("%+v", e)
		}
		started := strings.Fields(string(must(os.ReadFile(asked))))
		if len(started) != int(step)+1 {
			t.Errorf("evaluation %d: asked %d times", step+1, len(started))
		}
		for _, child := range started {
			pid := must(strconv.Atoi(child))
			for began := time.Now(); running(pid); time.Sleep(10 * time.Millisecond) {
				if time.Since(began) > 20*time.Second {
					t.Fatalf("what it has started still runs")
				}
			}
		}
	}
	if text := r.log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "more than 500ms") {
		t.Errorf("log: %s", text)
	}
}

// running reports whether a process is there and not just waited for.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestStopOfRecognizer: a text whose recognizer a stop has ended has no line, so that a resumed run transcribes it.
func TestStopOfRecognizer(t *testing.T) {
	r := newRun(t)
	script, asked := filepath.Join(t.TempDir(), "hear.sh"), filepath.Join(t.TempDir(), "asked")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+asked+"; sleep 60\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	r.List = must(Read(r.write(t, "a.txt", "hello there."), r.bundle, r.data, texts.Rules{}))
	r.Recognizer = must(NewRecognizer(script + " {wav}"))
	stop := make(chan struct{})
	r.Stop = stop
	s := must(Open(t.Context(), r.Config))
	defer s.Close()
	go func() {
		for _, err := os.Stat(asked); err != nil; _, err = os.Stat(asked) {
			time.Sleep(time.Millisecond)
		}
		close(stop)
	}()
	if e := s.Speak(1); e != nil || len(r.spoken(t)) != 0 || r.log.Len() > 0 {
		t.Errorf("%+v, %d lines, log: %s", e, len(r.spoken(t)), &r.log)
	}
}
