package samples

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	for _, command := range []string{`a "b`, `a \`, "transcribe"} {
		if _, err := NewRecognizer(command); err == nil || hint.Of(err) == "" {
			t.Errorf("%s: %v", command, err)
		}
	}
	if r, err := NewRecognizer(""); r != nil || err != nil {
		t.Error(r, err)
	}
}

// TestRecognize: what a command prints is compared with the text. One that fails, or takes too long, warns once, and
// nothing else is missing.
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
	r.Recognizer = must(NewRecognizer("'" + script + "' {wav}"))
	s := must(Open(t.Context(), r.Config))
	defer s.Close()
	rate := func(step int64) (float64, bool) {
		t.Helper()
		e := s.Speak(step)
		if _, ok := Mean(e, Repeated); !ok || e.Incomplete {
			t.Errorf("%+v", e)
		}
		return Mean(e, WER)
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
	write("exec sleep 60")
	r.Recognizer.timeout = 50 * time.Millisecond
	began := time.Now()
	if _, err := r.Recognizer.recognize(t.Context(), "a.wav"); err == nil || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}
