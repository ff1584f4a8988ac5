package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/console"
)

// TestBoardsChangeNothing: a run has the same bits with and without boards, and goes on when one cannot be written.
func TestBoardsChangeNothing(t *testing.T) {
	weights := func(dir string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, "checkpoints", "step-000006", "params.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	flags := []string{"--max-steps", "6", "--eval-every", "3"}
	with, err := trainPico(t, console.Console{}, flags...)
	if err != nil {
		t.Fatal(err)
	}
	without, err := trainPico(t, console.Console{}, append(flags, "--tensorboard=false")...)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(with), weights(without)) {
		t.Error("the weights differ")
	}
	if _, err := os.Stat(filepath.Join(without, "tensorboard")); !os.IsNotExist(err) {
		t.Errorf("--tensorboard=false writes the folder: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(with, "tensorboard")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(with, "tensorboard"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var warnings bytes.Buffer
	if err := runFlags(t, console.Console{Err: &warnings}, "--resume", with, "--max-steps", "8"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(warnings.String(), "--tensorboard: ") {
		t.Errorf("no warning of the board: %q", &warnings)
	}
}
