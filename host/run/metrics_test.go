package run

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/console"
)

// TestMetrics: a run serves its figures from its start to its end, and refuses an address that is in use.
func TestMetrics(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if dir, err := trainPico(t, console.Console{}, "--metrics", address); exit.Code(err) != 2 ||
		!strings.Contains(err.Error(), "--metrics "+address+": the address is in use") || exit.Hint(err) == "" {
		t.Errorf("error %v (%s)", err, exit.Hint(err))
	} else if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("the run that was refused leaves %q", left)
	}
	l.Close()

	var out bytes.Buffer
	stop := make(chan struct{})
	ended := make(chan error)
	go func() {
		_, err := trainPico(t, console.Console{Out: &out, Stop: stop}, "--metrics", address, "--max-steps", "100000")
		ended <- err
	}()
	steps := regexp.MustCompile(`(?m)^xtts_host_steps_total ([1-9]\d*)$`)
	text := ""
	for began := time.Now(); !steps.MatchString(text); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("no step is served: %s", text)
		}
		if r, err := http.Get("http://" + address + "/metrics"); err == nil {
			body, _ := io.ReadAll(r.Body)
			r.Body.Close()
			text = string(body)
		}
	}
	for path, want := range map[string]string{"healthz": "; progress ", "readyz": "training, step "} {
		if r, err := http.Get("http://" + address + "/" + path); err != nil {
			t.Error(err)
		} else {
			body, _ := io.ReadAll(r.Body)
			if r.Body.Close(); r.StatusCode != 200 || !strings.Contains(string(body), want) {
				t.Errorf("/%s: %d, %s", path, r.StatusCode, body)
			}
		}
	}
	close(stop)
	if err := <-ended; exit.Code(err) != 130 {
		t.Error(err)
	}
	for _, want := range []string{`xtts_host_phase{phase="training"} 1`, "xtts_host_planned_steps 100000"} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	want := "  metrics      http://" + address + "/metrics, for Prometheus\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("the banner has no %q", want)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the run has ended, and its port is open")
	}
}
