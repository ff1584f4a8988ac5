package ort_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// A process has one environment, so tests of Init and Shutdown run in separate processes: the test binary, with the
// child's name in the environment.
const childEnv = "XTTS_HOST_ORT_TEST_CHILD"

var children = map[string]func() error{
	"quiet":     quietChild,
	"lifecycle": lifecycleChild,
	"missing":   func() error { return ort.Init(ort.Options{Library: "no/such/library.so"}) },
}

func startChild(t *testing.T, name string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, childEnv+"="+name, ort.LibraryEnv+"="+ort.Library())...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// quietChild does what a program does, and lives long enough for telemetry, if there were any, to start.
func quietChild() error {
	if err := orttest.Init(); err != nil {
		return err
	}
	s, err := ort.NewSession(ort.SessionConfig{Path: "testdata/add_one.onnx"})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := addOne(s); err != nil {
		return err
	}
	time.Sleep(time.Second)
	return nil
}

func addOne(s *ort.Session) error {
	buf, err := ort.NewBuffer(4)
	if err != nil {
		return err
	}
	x, err := ort.NewTensor(buf.Bytes(), manifest.F32, []int{1})
	if err != nil {
		return err
	}
	b, err := s.NewBinding()
	if err != nil {
		return err
	}
	b.BindInput("x", x)
	b.BindOutput("y", x)
	if err := b.Run(nil); err != nil {
		return err
	}
	if y := ort.View[float32](x.Bytes())[0]; y != 1 {
		return fmt.Errorf("0 + 1 = %v", y)
	}
	return errors.Join(b.Close(), x.Close(), buf.Close())
}

// ONNX Runtime from PyPI writes a device id, a database and logs to these folders unless telemetry is disabled.
func TestTelemetryIsOff(t *testing.T) {
	t.Parallel()
	home, tmp := t.TempDir(), t.TempDir()
	for _, wish := range []string{"", "0"} {
		out, err := startChild(t, "quiet", "HOME="+home, "TMPDIR="+tmp, "XDG_CACHE_HOME=",
			"ORT_DISABLE_TELEMETRY="+wish)
		if err != nil || out != "" {
			t.Fatalf("%v: %s", err, out)
		}
		for _, dir := range []string{home, tmp} {
			filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
				if path != dir || err != nil {
					t.Errorf("ORT_DISABLE_TELEMETRY=%q: found %s (%v)", wish, path, err)
				}
				return nil
			})
		}
	}
}

func TestMissingLibrary(t *testing.T) {
	t.Parallel()
	out, err := startChild(t, "missing")
	if err == nil || out != "ONNX Runtime library no/such/library.so: file does not exist\n" {
		t.Errorf("%v: %s", err, out)
	}
	var hint interface{ Hint() string } = &ort.LibraryError{}
	for _, want := range []string{"scripts/fetch-ort.sh", "make run", "--ort-lib", ort.LibraryEnv} {
		if !strings.Contains(hint.Hint(), want) {
			t.Errorf("the hint lacks %s: %s", want, hint.Hint())
		}
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	if out, err := startChild(t, "lifecycle"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func lifecycleChild() error {
	model, err := os.ReadFile("testdata/add_one.onnx")
	if err != nil {
		return err
	}
	buf, err := ort.NewBuffer(4)
	if err != nil {
		return err
	}
	uses := map[string]func() error{
		"session": func() error { _, err := ort.NewSession(ort.SessionConfig{Model: model}); return err },
		"tensor":  func() error { _, err := ort.NewTensor(buf.Bytes(), manifest.F32, nil); return err },
		"options": func() error { _, err := ort.NewRunOptions(); return err },
	}
	refused := func(when string) error {
		for name, use := range uses {
			if err := use(); !errors.Is(err, ort.ErrNotInitialized) {
				return fmt.Errorf("%s %s: %v", name, when, err)
			}
		}
		return nil
	}

	if ort.Version() != "" || ort.Library() != "" {
		return fmt.Errorf("before Init: version %q, library %q", ort.Version(), ort.Library())
	}
	if err := errors.Join(refused("before Init"), ort.Shutdown()); err != nil {
		return err
	}
	if err := ort.Init(ort.Options{Library: "testdata/make_models.py"}); err == nil {
		return errors.New("a script was loaded as a library")
	}
	if err := ort.Init(ort.Options{}); err != nil {
		return fmt.Errorf("Init after a failed one: %w", err)
	}
	if err := ort.Init(ort.Options{}); err != nil {
		return fmt.Errorf("a second Init: %w", err)
	}
	if err := ort.Init(ort.Options{Library: "no/such/library.so"}); err == nil {
		return errors.New("a second Init with another library passed")
	}

	s, err := ort.NewSession(ort.SessionConfig{Model: model})
	if err != nil {
		return err
	}
	if err := ort.Shutdown(); err == nil ||
		!strings.Contains(err.Error(), "1 sessions, 0 tensors, 0 run options and 0 arenas") {
		return fmt.Errorf("Shutdown with a session: %v", err)
	}
	if err := errors.Join(addOne(s), s.Close(), s.Close(), ort.Shutdown(), ort.Shutdown()); err != nil {
		return err
	}
	if err := ort.Init(ort.Options{}); err == nil {
		return errors.New("Init after Shutdown passed")
	}
	return refused("after Shutdown")
}
