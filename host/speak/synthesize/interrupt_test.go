package synthesize

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/synthesizetest"
)

// TestInterrupted: Ctrl-C ends the command while it waits for the text or loads, with its status and without a file.
func TestInterrupted(t *testing.T) {
	folder := t.TempDir()
	graph, out := filepath.Join(folder, "bundle"), filepath.Join(folder, "a.wav")
	if err := synthesizetest.Write(graph, "../../../ortgraphs/testdata/pico", tokenizer); err != nil {
		t.Fatal(err)
	}
	endless, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin := os.Stdin
	os.Stdin = endless
	t.Cleanup(func() { os.Stdin = stdin; writer.Close() })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exit.ErrInterrupted)
	for _, o := range []Options{{TextFile: "-"}, {Text: "hello there."}} {
		o.Language, o.Speakers, o.Out, o.Given = "en", []string{clip(t, 0.5, 22050, 1)}, out,
			func(string) bool { return false }
		var text bytes.Buffer
		err := Run(ctx, configtest.Parse(t, "--graph", graph, "--device", "cpu"), o,
			console.Console{Out: &text, Err: &text})
		if exit.Code(err) != 130 {
			t.Errorf("%+v: status %d: %v; %s", o, exit.Code(err), err, &text)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	set := configtest.Parse(t, "--graph", graph, "--device", "cpu")
	bundle, err := open(set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openModel(ctx, set, bundle); exit.Code(err) != 130 {
		t.Errorf("while it loads: %v", err)
	}
}
