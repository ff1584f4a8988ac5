package prometheus

import (
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// free is an address that is free.
func free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Listen(free(t), "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.now = func() time.Time { return time.Unix(1000, 0) }
	return s
}

// all are events with everything that figures are made of.
func all() []event.Event {
	skipped := &event.Step{Step: 12, Skipped: true, Loss: math.NaN(), Metrics: []float64{math.NaN()}}
	return []event.Event{
		&event.Start{Bundle: "na\"no", Device: "cpu", Metrics: []string{"mel_loss"}, Step: 10, Total: 20},
		&event.Phase{Phase: event.Training},
		&event.Step{
			Step: 11, Epoch: 2, Loss: 0.5, Metrics: []float64{0.25}, LR: 0.125, GradNorm: 2,
			Rows: make([]int32, 3), Frames: 40,
			Players: []event.Player{{Name: "critic", LR: 0.5, GradNorm: 4}, {Name: "speaker", LR: 0.125, GradNorm: 2}},
			Times:   event.Times{Time: 30 * time.Millisecond, InputWait: 5 * time.Millisecond},
		},
		skipped,
		&event.Evaluation{Step: 12, Loss: 0.75, Metrics: []float64{0.375}, Best: true},
		&event.Spoken{
			Step: 12, Measures: []event.Value{{Name: "mcd_db", Value: 6.5}},
			Utterances: []event.Utterance{{ID: "secret-clip", Ended: true}, {ID: "secret-clip-2"}},
		},
		&event.Memory{Role: "Model", GPU: 1, Used: 1 << 30, Limit: 1 << 31},
		&event.Checkpoint{Step: 12}, &event.Checkpoint{Step: 12, Err: io.ErrShortWrite},
		&event.Warning{Text: "w"}, &event.Warning{Text: "e", Error: true},
	}
}

// scrape returns the answer for a path.
func scrape(t *testing.T, s *Server, path string) (status int, text string) {
	t.Helper()
	r, err := http.Get(strings.TrimSuffix(s.URL(), "/metrics") + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func TestFigures(t *testing.T) {
	s := start(t)
	s.Quarantined(func() int { return 7 })
	if err := s.Take(all()); err != nil {
		t.Fatal(err)
	}
	_, text := scrape(t, s, "/metrics")
	for _, want := range strings.Split(`xtts_host_best_evaluation_loss 0.75
xtts_host_best_evaluation_step 12
xtts_host_checkpoint_step 12
xtts_host_checkpoint_timestamp_seconds 1000
xtts_host_checkpoints_total 1
xtts_host_epoch 0
xtts_host_errors_total 1
xtts_host_evaluation_loss 0.75
xtts_host_evaluation_metric{metric="mel_loss"} 0.375
xtts_host_evaluation_step 12
xtts_host_frames_total 40
xtts_host_gpu_memory_bytes{gpu="1",role="model"} 1.073741824e+09
xtts_host_gpu_memory_limit_bytes{gpu="1",role="model"} 2.147483648e+09
xtts_host_gradient_norm{player="critic"} 4
xtts_host_info{bundle="na\"no",device="cpu",version="v1"} 1
xtts_host_input_wait_seconds_total 0.005
xtts_host_learning_rate{player="critic"} 0.5
xtts_host_loss NaN
xtts_host_metric{metric="mel_loss"} 0.25
xtts_host_phase{phase="preparing"} 0
xtts_host_phase{phase="training"} 1
xtts_host_planned_steps 20
xtts_host_quarantined_clips 7
xtts_host_samples_total 3
xtts_host_skipped_steps_total 1
xtts_host_spoken{measure="mcd_db"} 6.5
xtts_host_spoken_texts 2
xtts_host_spoken_texts_cut 1
xtts_host_step 12
xtts_host_step_duration_seconds_bucket{le="0.02"} 1
xtts_host_step_duration_seconds_bucket{le="0.05"} 2
xtts_host_step_duration_seconds_count 2
xtts_host_step_timestamp_seconds 1000
xtts_host_steps_total 2
xtts_host_unsaved_checkpoints_total 1
xtts_host_warnings_total 1`, "\n") {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("a clip is named")
	}
	if t.Failed() {
		t.Log(text)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// Prometheus asks for OpenMetrics first.
func TestOpenMetrics(t *testing.T) {
	s := start(t)
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	s.server.Handler.ServeHTTP(w, request)
	if typ := w.Header().Get("Content-Type"); !strings.HasPrefix(typ, "application/openmetrics-text") ||
		!strings.HasSuffix(w.Body.String(), "# EOF\n") {
		t.Errorf("type %s, text %s", typ, w.Body)
	}
}

func TestPaths(t *testing.T) {
	s := start(t)
	for path, want := range map[string]int{
		"/metrics": 200, "/healthz": 200, "/readyz": 503,
		"/": 404, "/metrics/": 404, "/debug/pprof/": 404, "/metrics/../etc/passwd": 404,
	} {
		if got, _ := scrape(t, s, path); got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
	r, err := http.Post(s.URL(), "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", r.StatusCode)
	}
}

// A probe gets one line, and its status says whether the run is ready.
func TestProbes(t *testing.T) {
	s := start(t)
	ask := func(path string, status int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		s.server.Handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if typ := w.Header().Get("Content-Type"); w.Code != status || !strings.HasPrefix(w.Body.String(), want) ||
			strings.Count(w.Body.String(), "\n") != 1 || !strings.HasPrefix(typ, "text/plain") {
			t.Errorf("%s: %d, %s, %q, want %d and %q", path, w.Code, typ, w.Body, status, want)
		}
	}
	ask("/healthz", 200, "preparing; progress 0s ago")
	ask("/readyz", 503, "preparing")
	if err := s.Take(all()); err != nil {
		t.Fatal(err)
	}
	ask("/healthz", 200, "training, step 12 of 20; progress 0s ago")
	ask("/readyz", 200, "training, step 12 of 20")
}

// The server ends with the bus, also while someone is connected and sends nothing.
func TestClose(t *testing.T) {
	s := start(t)
	conn, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	bus := event.NewBus()
	bus.Offer("metrics", s, func(text string) { t.Error(text) })
	began := time.Now()
	if err := bus.Close(); err != nil || time.Since(began) > 4*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if conn, err := net.Dial("tcp", s.listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}

var named = regexp.MustCompile(`\b(?:xtts_host|process)_\w+`)

// Each figure that the dashboard and the rules name is served.
func TestDashboardNamesWhatIsServed(t *testing.T) {
	s := start(t)
	if err := s.Take(all()); err != nil {
		t.Fatal(err)
	}
	_, text := scrape(t, s, "/metrics")
	served := named.FindAllString(text, -1)
	for _, file := range []string{"xtts-host.json", "alerts.yml"} {
		data, err := os.ReadFile("../../../docs/grafana/" + file)
		if err != nil {
			t.Fatal(err)
		}
		names := named.FindAllString(string(data), -1)
		if len(names) < 5 {
			t.Errorf("%s names only %q", file, names)
		}
		for _, name := range names {
			if !slices.Contains(served, name) {
				t.Errorf("%s names %s, which is not served", file, name)
			}
		}
	}
}

func BenchmarkTake(b *testing.B) {
	s, err := Listen(free(b), "v1")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	events := all()
	if err := s.Take(events[:1]); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.Take(events[2:3]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScrape(b *testing.B) {
	s, err := Listen(free(b), "v1")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Take(all()); err != nil {
		b.Fatal(err)
	}
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	for b.Loop() {
		s.server.Handler.ServeHTTP(httptest.NewRecorder(), request)
	}
}
