package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/page/pagetest"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// free is an address of this machine that is free.
func free(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serve serves the page of runs until the end of the test.
func serve(t testing.TB, c Config) *Server {
	t.Helper()
	c.Flag = Flag
	if c.Address == "" {
		c.Address = free(t, "127.0.0.1")
	}
	s, err := Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ask makes a request with headers, each "Name: value", and returns status, headers and body.
func ask(t testing.TB, s *Server, method, path, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.listener.Addr().String()+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			q.Host = value
		}
		q.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// write writes a file of a run folder.
func write(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// tone is a WAV file of half a second.
func tone() []byte {
	samples := make([]int16, 12000)
	for i := range samples {
		samples[i] = int16(8000 * math.Sin(2*math.Pi*float64(220+i/40)*float64(i)/24000))
	}
	return wav.File(24000, samples)
}

// small is the folder of a run with a sample and a clip that is left out.
func small(t testing.TB) string {
	dir := t.TempDir()
	write(t, dir, rundir.MetricsFile,
		[]byte(`{"step":1,"loss":2,"step_ms":1}`+"\n"+`{"step":2,"loss":1,"step_ms":1}`+"\n"))
	write(t, dir, "samples/step-000002/1.wav", tone())
	clip := filepath.Join(t.TempDir(), "clip.wav")
	write(t, filepath.Dir(clip), "clip.wav", tone())
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, filepath.Dir(secret), "secret", []byte("the secret of another program"))
	var lines []byte
	for _, path := range []string{clip, secret, "/dev/zero", "", filepath.Dir(clip)} {
		line, _ := json.Marshal(map[string]string{"id": "a", "path": path, "reason": "too long"})
		lines = append(append(lines, line...), '\n')
	}
	write(t, dir, rundir.QuarantineFile, lines)
	return dir
}

// TestForeignRequests: a page of another origin cannot read, and cannot have the program speak. A name that is not this
// machine's is refused, as one that a stranger's name server leads here.
func TestForeignRequests(t *testing.T) {
	s := serve(t, Config{Runs: []string{small(t)}, Program: "/bin/false"})
	at := s.listener.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	const order, speak = `{"text":"a","checkpoint":"best"}`, "/api/runs/0/speak"
	for _, c := range []struct {
		method, path, headers string
		want                  int
	}{
		{"GET", "/api/runs", "", 200},
		{"GET", "/api/runs", "Host: localhost:" + port, 200},
		{"GET", "/api/runs", "Host: 127.0.0.1:9", 200}, // through a tunnel
		{"GET", "/api/runs", "Host: [::1]:9", 200},
		{"GET", "/api/runs", "Host: evil.example:" + port, 421},
		{"GET", "/api/runs", "Host: 10.0.0.1:" + port, 421},
		{"GET", "/runs/0", "Host: localhost.evil.example", 421},
		{"GET", "/api/runs", "Sec-Fetch-Site: same-origin", 200},
		{"GET", "/api/runs", "Sec-Fetch-Site: cross-site", 403},
		{"GET", "/api/runs", "Sec-Fetch-Site: same-site", 403}, // another port of this machine
		{"GET", "/runs/0", "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: document", 200},
		{"GET", "/runs/0", "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: iframe", 403},
		{"GET", "/api/runs", "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: document", 403},
		{"GET", "/api/runs", "Origin: http://evil.example", 403},
		{"POST", speak, "", 403},
		{"POST", speak, "Sec-Fetch-Site: none", 403},
		{"POST", speak, "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: document", 403},
		{"POST", speak, "Origin: null", 403},
		{"POST", speak, "Origin: http://localhost:" + port, 403},
		{"POST", speak, "Origin: https://" + at, 403},
		{"POST", speak, "Origin: http://" + at, 422}, // it is asked, and /bin/false fails
		{"POST", speak, "Sec-Fetch-Site: same-origin", 422},
		{"PUT", speak, "Sec-Fetch-Site: same-origin", 405},
		{"GET", speak, "", 405},
	} {
		var headers []string
		if c.headers != "" {
			headers = strings.Split(c.headers, "|")
		}
		status, h, text := ask(t, s, c.method, c.path, order, headers...)
		if status != c.want {
			t.Errorf("%s %s with %s: %d %s, want %d", c.method, c.path, c.headers, status, text, c.want)
		}
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" ||
			h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s %s: headers %v", c.method, c.path, h)
		}
	}
}

// TestToken: an address that other machines reach needs the token, which becomes a cookie and leaves the address.
func TestToken(t *testing.T) {
	s := serve(t, Config{Runs: []string{small(t)}, Address: free(t, "0.0.0.0")})
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	token := u.Query().Get("token")
	if len(token) < 20 {
		t.Fatalf("the token of %s", s.URL())
	}
	for _, path := range []string{"/", "/api/runs", "/assets/app.js", "/?token=", "/?token=" + token + "a",
		"/?token=" + token[1:]} {
		if status, _, text := ask(t, s, "GET", path, ""); status != http.StatusUnauthorized ||
			strings.Contains(text, token) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _, _ := ask(t, s, "POST", "/api/runs/0/speak?token="+token, "{}",
		"Sec-Fetch-Site: same-origin"); status != http.StatusUnauthorized {
		t.Errorf("an order with the token in its address: %d", status)
	}
	status, h, _ := ask(t, s, "GET", "/runs/0?token="+token, "")
	cookie := h.Get("Set-Cookie")
	if status != http.StatusSeeOther || h.Get("Location") != "/runs/0" || !strings.Contains(cookie, "HttpOnly") ||
		!strings.Contains(cookie, "SameSite=Strict") {
		t.Fatalf("%d %v", status, h)
	}
	pair, _, _ := strings.Cut(cookie, ";")
	if status, _, _ := ask(t, s, "GET", "/api/runs", "", "Cookie: "+pair); status != 200 {
		t.Errorf("with the cookie: %d", status)
	}
	if status, _, _ := ask(t, s, "GET", "/api/runs", "", "Cookie: "+pair, "Host: evil.example"); status != 421 {
		t.Errorf("with the cookie, by another name: %d", status)
	}
	local := serve(t, Config{Runs: []string{small(t)}})
	if strings.Contains(local.URL(), "token") {
		t.Error(local.URL())
	}
}

// TestPaths: no request reaches a file that is not a sample of its run, and none in the folder of a stranger leads out
// of it.
func TestPaths(t *testing.T) {
	dir := small(t)
	secret := filepath.Join(t.TempDir(), "secret.wav")
	write(t, filepath.Dir(secret), "secret.wav", tone())
	if err := os.Symlink(secret, filepath.Join(dir, "samples", "step-000002", "linked.wav")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(dir, "samples", "step-000003")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "samples/step-000002/page.wav", []byte("<html><script>alert(1)</script>"))
	write(t, dir, "samples/step-000002/short.png", []byte("\x89PN"))
	s := serve(t, Config{Runs: []string{dir}})
	for file, want := range map[string]int{
		"samples/step-000002/1.wav": 200, "samples/step-000002/linked.wav": 404, "samples/step-000003/secret.wav": 404,
		"samples/step-000002/9.wav": 404, "samples/step-000002/page.wav": 415, "samples/step-000002/short.png": 415,
		"samples/step-000002/../../config.yaml": 400, "config.yaml": 400, secret: 400, "../" + secret: 400, "": 400,
		"samples/step-000002/1.wav\x00.png": 400, "samples\\step-000002\\1.wav": 400, "samples/step-000002/": 400,
		"samples/./step-000002/1.wav": 400, "/samples/step-000002/1.wav": 400,
	} {
		status, h, text := ask(t, s, "GET", "/api/runs/0/media?file="+url.QueryEscape(file), "")
		if status != want || want == 200 && h.Get("Content-Type") != "audio/wav" ||
			want != 200 && !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
			t.Errorf("%q: %d %s, want %d", file, status, text, want)
		}
		if status, _, _ := ask(t, s, "GET", "/api/runs/0/spectrogram?file="+url.QueryEscape(file), ""); want != 415 &&
			status != want {
			t.Errorf("spectrogram of %q: %d, want %d", file, status, want)
		}
	}
	for path, want := range map[string]int{
		"/runs/1": 404, "/runs/-1": 404, "/runs/x": 404, "/api/runs/1/about": 404,
		"/api/runs/99999999999999999999/log": 404,
		"/assets/page.html":                  200, "/assets/uplot.LICENSE": 404, "/assets/..%2fserver.go": 404,
		"/assets/%2e%2e%2fdoc.go": 404,
		"/../../etc/passwd":       404, "/static/app.js": 404, "/": 303, "/api/runs/0/speech/1.wav": 404,
		"/api/runs/0/clip?n=99": 404, "/api/runs/0/clip?n=-5": 200, "/api/runs/0/clip?n=3": 404,
	} {
		status, _, text := ask(t, s, "GET", path, "")
		if status == 307 || status == 301 { // the path is cleaned first
			continue
		}
		if status != want || strings.Contains(text, "root:") {
			t.Errorf("%s: %d %.80s, want %d", path, status, text, want)
		}
	}
}

// TestRunWithoutEvaluations: the list of runs names no best loss, and the texts have no steps.
func TestRunWithoutEvaluations(t *testing.T) {
	s := serve(t, Config{Runs: []string{small(t)}})
	_, _, text := ask(t, s, "GET", "/api/runs", "")
	if !strings.Contains(text, `"step":2,"loss":1,"best_evaluation":null`) {
		t.Error(text)
	}
	if _, _, text := ask(t, s, "GET", "/api/runs/0/texts", ""); !strings.Contains(text, `"steps":[]`) {
		t.Errorf("texts before the first is spoken: %s", text)
	}
}

// TestClips: of a recording that a list names, only sound is sent, as a WAV file.
func TestClips(t *testing.T) {
	s := serve(t, Config{Runs: []string{small(t)}})
	status, h, text := ask(t, s, "GET", "/api/runs/0/clip?n=0", "")
	if status != 200 || h.Get("Content-Type") != "audio/wav" || len(text) != wav.HeaderSize+2*12000 {
		t.Errorf("%d %v, %d bytes", status, h, len(text))
	}
	if status, _, part := ask(t, s, "GET", "/api/runs/0/clip?n=0", "", "Range: bytes=100-199"); status != 206 ||
		part != text[100:200] {
		t.Errorf("a part: %d, %d bytes", status, len(part))
	}
	for n := 1; n < 5; n++ {
		status, _, text := ask(t, s, "GET", fmt.Sprint("/api/runs/0/clip?n=", n), "")
		if status == 200 || strings.Contains(text, "secret") {
			t.Errorf("clip %d: %d %s", n, status, text)
		}
	}
	status, h, text = ask(t, s, "GET", "/api/runs/0/spectrogram?file=samples/step-000002/1.wav", "")
	if status != 200 || h.Get("Content-Type") != "image/png" || !strings.HasPrefix(text, "\x89PNG") {
		t.Errorf("spectrogram: %d %.80s", status, text)
	}
}

// TestBusy: who asks for a picture while others are drawn for too long is told to come back, and leaves no open file.
func TestBusy(t *testing.T) {
	s := serve(t, Config{Runs: []string{small(t)}})
	s.heavy <- struct{}{}
	gone, cancel := context.WithCancel(t.Context()) // it waits no longer
	cancel()
	q := httptest.NewRequest("GET", "/?file=samples/step-000002/1.wav", nil).WithContext(gone)
	w := httptest.NewRecorder()
	if s.spectrogram(w, q, s.runs[0]); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(open) == 0 {
		t.Fatal(open, err)
	}
	for _, fd := range open {
		if to, _ := os.Readlink(fd); strings.HasSuffix(to, "step-000002/1.wav") {
			t.Errorf("%s is open", to)
		}
	}
}

// TestRanks: of many ranks, those with the lowest numbers are shown, and a log that is not there has no time.
func TestRanks(t *testing.T) {
	dir := small(t)
	for n := 1; n <= 100; n++ {
		if err := os.MkdirAll(filepath.Join(dir, rundir.RanksFolder, fmt.Sprint(n)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, rundir.RanksFolder+"/2/"+rundir.LogFile, []byte(`{"msg":"a"}`+"\n"))
	_, _, text := ask(t, serve(t, Config{Runs: []string{dir}}), "GET", "/api/runs/0/ranks", "")
	var got []struct {
		Rank    int
		Written int64
		Lines   [][3]string
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != mostRanks {
		t.Fatal(len(got), err)
	}
	for i, r := range got {
		if r.Rank != i+1 || (r.Written > 0) != (r.Rank == 2) || r.Written < 0 || (len(r.Lines) == 1) != (r.Rank == 2) {
			t.Errorf("rank %d of %d: %+v", i+1, len(got), r)
		}
	}
}

// TestHostileRun: every answer about the folder of a stranger is JSON without a control character and without one that
// turns a text around.
func TestHostileRun(t *testing.T) {
	for _, number := range []float64{0, 1e308, -1e308} {
		s := serve(t, Config{Runs: []string{pagetest.HostileRun(t, number)}})
		for _, path := range []string{
			"/api/runs", "/api/runs/0/about", "/api/runs/0/curves", "/api/runs/0/curves?from=-9&to=9e9&pieces=-1",
			"/api/runs/0/texts", "/api/runs/0/takes?step=10", "/api/runs/0/clips", "/api/runs/0/log",
			"/api/runs/0/ranks",
		} {
			status, h, text := ask(t, s, "GET", path, "")
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil || status != 200 ||
				h.Get("Content-Type") != "application/json" {
				t.Fatalf("%s: %d %v %.300s", path, status, err, text)
			}
			walk(v, func(s string) {
				if strings.ContainsAny(s, "\x00\x1b\u202e\u2066\n") {
					t.Errorf("%s has %q", path, s)
				}
			})
		}
	}
}

// walk calls f with the strings of a JSON value.
func walk(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, one := range v {
			walk(one, f)
		}
	case map[string]any:
		for name, one := range v {
			f(name)
			walk(one, f)
		}
	}
}

// TestNothingElsewhere: the page names no address but its own, has no inline script or style, and sets no HTML.
func TestNothingElsewhere(t *testing.T) {
	entries, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), `xmlns="http://www.w3.org/2000/svg"`, "")
		if e.Name() == "uplot.js" { // its first line says where it comes from
			_, text, _ = strings.Cut(text, "\n")
		}
		if e.Name() != "uplot.LICENSE" &&
			regexp.MustCompile(`(?i)https?:|wss?:|//[a-z0-9.-]+\.[a-z]`).MatchString(text) {
			t.Errorf("%s names an address", e.Name())
		}
		if strings.HasPrefix(e.Name(), "uplot") {
			continue
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
			"new Function"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", e.Name(), bad)
			}
		}
		if strings.HasSuffix(e.Name(), ".html") &&
			regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script>|javascript:`).MatchString(text) {
			t.Errorf("%s has an inline script or style", e.Name())
		}
	}
}

// TestUPlot: the library is the file that its authors publish: uPlot 1.6.32 of the registry of npm, dist/.
func TestUPlot(t *testing.T) {
	for name, want := range map[string]string{
		"static/uplot.js":      "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"static/uplot.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"static/uplot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
	} {
		data, err := static.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has the SHA-256 %x", name, sum)
		}
		if name == "static/uplot.js" && !bytes.HasPrefix(data,
			[]byte("/*! https://github.com/leeoniya/uPlot (v1.6.32) */")) {
			t.Errorf("%s is another version", name)
		}
	}
}
