package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/socketdir"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestStartFailures(t *testing.T) {
	const stderr = "something terrible happened\n"
	tests := []struct {
		mode   string
		change func(r *rig)
		want   string
		exit   string
		hint   string
	}{
		{
			"crash-at-start", nil, "start: it ended before the handshake was done: exit status 3", "exit status 3",
			startHint,
		},
		{
			"garbage", nil,
			`start: it wrote "Hello from a chatty library" to its standard output instead of the handshake`,
			"signal: killed", stdoutHint,
		},
		{
			"garbage-no-newline", nil, `start: it wrote "Hello" to its standard output instead of the handshake`,
			"exit status 0", stdoutHint,
		},
		{
			"hang-at-start", func(r *rig) { r.StartTimeout = 300 * time.Millisecond },
			"start: no handshake within 300ms", "signal: killed", startLateHint,
		},
		{
			"protocols=3", nil, "start: the program uses protocol 3, but this host has 1 and 2", "signal: killed",
			protocolHint,
		},
		{
			"protocols=1", func(r *rig) { r.Plugin.Manifest.Protocol = 2 },
			"start: the program uses protocol 1, but plugin.json says that it needs 2", "signal: killed", olderHint,
		},
		{
			"tcp", nil, "start: it listens on tcp 127.0.0.1:1, not on a unix socket in PLUGIN_UNIX_SOCKET_DIR",
			"signal: killed", rulesHint,
		},
		{
			"wrong-id", nil, "Info: another program: it reports other 0.1, but plugin.json has fake 1.0.0",
			"signal: killed", versionHint,
		},
		{"refuse-configure", nil, "Configure: bucket 0 is too small for first", "signal: killed", "plugin fake: take " +
			"a larger one"},
		{"panic-at-configure", nil, "Configure: panic: boom (stage.go:7)", "signal: killed", crashHint},
		{
			"crash-at-configure", nil, "start: it ended before Configure was done: exit status 3", "exit status 3",
			startHint,
		},
		{
			"hang-at-configure", func(r *rig) { r.ConfigureTimeout = 300 * time.Millisecond },
			"Configure: no answer within 300ms", "signal: killed", startLateHint,
		},
		{"ok", func(r *rig) {
			r.Plugin.Command = []string{filepath.Join(r.t.TempDir(), "script")}
			if err := os.WriteFile(r.Plugin.Command[0], []byte("not a program"), 0o700); err != nil {
				r.t.Fatal(err)
			}
		}, "start: fork/exec SCRIPT: exec format error", "", startHint},
		{
			"ok", func(r *rig) { r.t.Setenv("TMPDIR", "/nowhere") },
			"start: make the socket's folder: mkdir /nowhere: no such file or directory", "",
			"set TMPDIR to a folder that can be written",
		},
		{"ok", func(r *rig) { r.Plugin.Sum = strings.Repeat("0", 64) },
			"start: SCRIPT was changed since it was checked: sha256 SUM, plugin.sum says " + strings.Repeat("0", 64),
			"", startHint},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			r := newRig(t, tt.mode)
			r.Workers = 2
			if tt.change != nil {
				tt.change(r)
			}
			e := r.refuse()
			got := strings.ReplaceAll(e.Err.Error(), r.Plugin.Command[0], "SCRIPT")
			if before, after, ok := strings.Cut(got, "sha256 "); ok {
				got = before + "sha256 SUM" + after[64:]
			}
			if got != tt.want || e.Exit != tt.exit || e.Hint() != tt.hint {
				t.Errorf("got  %q, exit %q, hint %q\nwant %q, exit %q, hint %q", got, e.Exit, e.Hint(), tt.want,
					tt.exit, tt.hint)
			}
			if strings.HasPrefix(tt.mode, "crash") != (e.LastStderr == stderr) {
				t.Errorf("last stderr %q", e.LastStderr)
			}
		})
	}
	t.Run("not startable", func(t *testing.T) {
		r := newRig(t, "ok")
		r.Plugin.State, r.Plugin.Reason = "modified", "plugin.sum:1: not a line of sha256sum"
		if _, err := NewPool(t.Context(), r.Config); err == nil ||
			err.Error() != "plugin fake: the catalog does not allow it to be started: modified plugin.sum:1: not a "+
				"line of sha256sum" {
			t.Error(err)
		}
	})
	t.Run("context ends", func(t *testing.T) {
		r := newRig(t, "hang-at-start")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("interrupted"))
		defer cancel()
		_, err := NewPool(ctx, r.Config)
		if err == nil || err.Error() != "start plugin fake: interrupted" {
			t.Error(err)
		}
	})
}

// TestRefusedValue: without a hint of the plugin, the hint says what its configuration takes.
func TestRefusedValue(t *testing.T) {
	r := newRig(t, "refuse-value")
	r.Plugin.Manifest.Stages = []manifest.Stage{{Name: "add", Config: map[string]any{"properties": map[string]any{
		"gain": map[string]any{"type": "number", "maximum": 6}}}}}
	want := "stage add takes gain (number, at most 6) (" + filepath.Join(r.Plugin.Dir, manifest.PluginFile) + ")"
	if e := r.refuse(); e.Err.Error() != `Configure: instance "first": gain is 9` || e.Hint() != want {
		t.Errorf("%v, hint %q, want %q", e.Err, e.Hint(), want)
	}
}

func TestSurroundings(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
	t.Setenv("HOST_SECRET", "leaks")
	t.Setenv("XTTS_PLUGIN_AUTHOR", "free")
	t.Setenv("GOMAXPROCS", "64")
	r := newRig(t, "environment")
	r.Configure.DeviceUuid = "GPU-1234"
	_, err := callSlot(t, r.open(), 0)
	if !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	var s surroundings
	_, text, _ := strings.Cut(err.Error(), " failed: ")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range s.Env {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	for key, want := range map[string]string{
		"CUDA_VISIBLE_DEVICES": "GPU-1234", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "ORT_DISABLE_TELEMETRY": "1",
		"GOMAXPROCS": "64", "XTTS_PLUGIN_AUTHOR": "free", "PATH": os.Getenv("PATH"), "HOME": env["TMPDIR"],
	} {
		if env[key] != want {
			t.Errorf("%s=%s, want %s", key, env[key], want)
		}
	}
	if _, ok := env["HOST_SECRET"]; ok {
		t.Error("the host's environment leaks")
	}
	if dir := env["TMPDIR"]; !strings.HasPrefix(dir, r.tmp+"/"+tempPrefix) {
		t.Errorf("folder for temporary files %s", dir)
	}
	if dir := env["PLUGIN_UNIX_SOCKET_DIR"]; !strings.HasPrefix(dir, r.tmp+"/"+socketdir.Prefix) {
		t.Errorf("socket folder %s", dir)
	} else if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket folder %s is still there: %v", dir, err)
	}
	if s.Stdin != "/dev/null" || s.Dir != r.tmp {
		t.Errorf("standard input %s in %s", s.Stdin, s.Dir)
	}
	if s.Group == getpgrp() {
		t.Error("the plugin is in the host's process group")
	}
	if !slices.Contains(s.FDs, "3 /memfd:xtts-host-ring (deleted)") ||
		!slices.ContainsFunc(s.FDs, func(fd string) bool { return strings.HasPrefix(fd, "4 pipe:") }) {
		t.Errorf("descriptors %q", s.FDs)
	}
}

func TestLog(t *testing.T) {
	r := newRig(t, "stderr")
	r.open()
	for _, want := range []string{`level=WARN msg="plugin fake: watch out" plugin=fake worker=0 answer=42`,
		`level=INFO msg="{\"@level\":\"info\",\"@message\":5}" plugin=fake worker=0`,
		`level=INFO msg="plain text" plugin=fake worker=0`} {
		eventually(t, want, func() bool { return strings.Contains(r.log.String(), want) })
	}
}

func TestFlood(t *testing.T) {
	r := newRig(t, "flood,crash-at-call=1")
	p := r.open()
	_, err := callSlot(t, p, 0)
	var e *PluginError
	if !errors.As(err, &e) || len(e.LastStderr) > tailSize ||
		!strings.HasSuffix(e.LastStderr, "end of flood\nsomething terrible happened\n") {
		t.Errorf("%v with %d bytes of stderr", err, len(e.LastStderr))
	}
	if n := len(r.log.String()); n > 2<<20 {
		t.Errorf("a flood of 3 MB makes a log of %d bytes", n)
	}
}
