package dashboard

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// shows fails the test unless an element shows these texts.
func (b *tab) shows(element string, want ...string) {
	b.t.Helper()
	text := fmt.Sprint(b.value(fmt.Sprintf(`document.querySelector(%q).innerText`, element)))
	for _, w := range want {
		if !strings.Contains(text, w) {
			b.t.Errorf("%s shows %q, and not %q", element, text, w)
		}
	}
}

// lacks fails the test if an element shows one of these words.
func (b *tab) lacks(element string, words ...string) {
	b.t.Helper()
	for _, w := range words {
		expression := fmt.Sprintf(`(document.querySelector(%q).innerText.match(
			new RegExp(".*\\b(" + %q + ")\\b.*", "i")) || [""])[0]`, element, w)
		if line := b.value(expression); line != "" {
			b.t.Errorf("%s shows %q", element, line)
		}
	}
}

const settled = `!document.querySelector("#status").textContent.includes("reading") &&
	!document.querySelector("#one").innerText.includes("Reading ")`

// TestUnreadPage: the page says which files of the run it cannot read, and shows the curves and the speech of the
// others.
func TestUnreadPage(t *testing.T) {
	dir := large(t, 400, 12)
	metrics := filepath.Join(dir, rundir.MetricsFile)
	if err := errors.Join(os.Remove(metrics), os.Mkdir(metrics, 0o755),
		os.Symlink(filepath.Join(dir, rundir.EvalFile), filepath.Join(dir, "ranks", rundir.LogFile)),
		os.Remove(filepath.Join(dir, rundir.LogFile)),
		os.Symlink(filepath.Join(dir, rundir.EvalFile), filepath.Join(dir, rundir.LogFile))); err != nil {
		t.Fatal(err)
	}
	torn, err := os.ReadFile(filepath.Join(dir, rundir.EvalFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, rundir.EvalFile, append([]byte("{\"step\":1,\"lo\n"), torn...))
	s := serve(t, Config{Runs: []string{dir, small(t)}})
	b := browse(t, s.listener.Addr().String())
	b.open(s.URL()+"runs/0", "light", 1280)
	b.until(`document.documentElement.dataset.curves > 0 && document.querySelectorAll("#samples .take").length > 3 &&
		document.querySelectorAll("#measures canvas").length > 0 && !document.querySelector("#lost").hidden`)
	b.shows("#lost", "metrics.jsonl: a folder", "eval.jsonl:1 was left out: ", "log.jsonl: a symbolic link",
		"The rest is shown.")
	b.shows("#steps", "step 400 of 400") // of the report
	b.shows("#charts", "mel_loss", "evaluation")
	b.axe()
	b.right()
	b.open(s.URL(), "light", 1280)
	b.until(`document.querySelectorAll("#runs-body tbody tr").length === 2`)
	b.shows("#runs-body tbody tr", "Not all can be read: metrics.jsonl: a folder", "400")
	b.axe()
}

// TestGonePage: the page says which sounds are not in the run folder any more. It has no player for them and does not
// ask for them.
func TestGonePage(t *testing.T) {
	dir := large(t, 400, 12)
	if err := os.RemoveAll(filepath.Join(dir, rundir.SamplesFolder)); err != nil {
		t.Fatal(err)
	}
	write(t, dir, rundir.QuarantineFile, []byte(`{"id":"a","path":"/nowhere/a.wav","reason":"too long"}`+"\n"))
	s := serve(t, Config{
		Runs: []string{dir}, Program: "/bin/false", Asks: func(string) (bool, error) { return true, nil },
	})
	b := browse(t, s.listener.Addr().String())
	b.open(s.URL(), "light", 1280)
	b.until(`document.querySelectorAll("#samples .take").length > 3 &&
		document.querySelectorAll("#clips button").length === 1`)
	if n := b.value(`document.querySelectorAll("#samples audio, #samples img").length`); n != 0.0 {
		t.Errorf("%v players and pictures", n)
	}
	b.shows("#samples", "The sound is gone: the run folder does not have samples/reference/clip-1.wav any more.",
		"does not have samples/step-000400/clip-1.wav any more.")
	b.shows("#speak-voice", "a recording of your own")
	b.do(chromedp.Click("#clips button", chromedp.ByQuery))
	b.until(`document.querySelector("#clips").innerText.includes("no sound: no such file or directory")`)
	b.shows("#clips-body", "1 clip cannot be used.")
	b.axe()
	b.right()
}

// TestEndedPages: of runs that have ended or were killed, the page promises nothing. Their states have the words of
// docs/runs.md, and a step has no total that is less.
func TestEndedPages(t *testing.T) {
	killed, empty := large(t, 61, 12), t.TempDir()
	if err := os.Remove(filepath.Join(killed, rundir.ReportFile)); err != nil {
		t.Fatal(err)
	}
	write(t, killed, rundir.SettingsFile, []byte("max_steps: 60  # flag\n"))
	write(t, empty, rundir.MetricsFile, nil)
	done := large(t, 60, 12)
	s := serve(t, Config{Runs: []string{done, killed, empty}, Program: "/bin/false"})
	b := browse(t, s.listener.Addr().String())
	for i, status := range []string{"done", "unfinished", "unfinished"} {
		b.open(s.URL()+fmt.Sprint("runs/", i), "dark", 400)
		b.until(settled)
		b.until(`document.querySelector("#inside-body").innerText.length > 20`)
		b.lacks("main", "yet", "so far", "goes on", "Reading")
		b.lacks("header", "yet", "so far", "training")
		b.shows("#status", status)
		if what := b.value(wide); what != "" {
			t.Errorf("run %d: wider than the window: %s", i, what)
		}
		switch i {
		case 0:
			b.shows("#steps", "step 60 of 60")
		case 1:
			b.shows("#steps", "step 61")
			b.lacks("#steps", "of 60")
			b.shows("#work", "The last step has no report: the run still trains, or was killed.")
			b.shows("#inside-body", "This run has no report.")
		case 2:
			b.shows("#charts", "The run folder has no figures of steps.")
			b.shows("#clips-body", "No clip was left out.")
			b.shows("#speech-body", "The run has spoken nothing.")
			b.shows("#speak-lacks", "No sentence can be spoken here: the run has no checkpoint.")
		}
		b.axe()
		b.right()
	}
	b.open(s.URL(), "light", 400)
	b.until(`document.querySelectorAll("#runs-body tbody tr").length === 3`)
	for i, status := range []string{"done", "unfinished", "unfinished"} {
		b.shows(fmt.Sprintf("#runs-body tbody tr:nth-child(%d) .badge", i+1), status)
	}
}

// TestServerGone: when the server does not answer, the page says so with the time and goes on trying. The state of a
// run that runs is not known then.
func TestServerGone(t *testing.T) {
	dir, at := large(t, 60, 12), free(t, "127.0.0.1")
	s := serve(t, Config{Runs: []string{dir}, Address: at})
	b := browse(t, at)
	b.open(s.URL(), "light", 1280)
	b.until(ready)
	b.right()
	s.Close()
	b.until(`!document.querySelector("#lost").hidden`)
	b.shows("#lost", "has not answered since ", ":", "This page tries again.", "start it again: xtts-host view "+dir)
	b.shows("#status", "done") // which does not change by itself
	b.axe()
	serve(t, Config{Runs: []string{dir}, Address: at})
	b.until(`document.querySelector("#lost").hidden`)
}

// TestRunGone: when the process of a run is gone without a word, the state of the run is not known, and is not
// training.
func TestRunGone(t *testing.T) {
	dir := large(t, 60, 12)
	s := serve(t, Config{})
	s.Show(dir)
	s.Take([]event.Event{&event.Phase{Phase: event.Training}})
	b := browse(t, s.listener.Addr().String())
	b.open(s.URL(), "light", 400)
	b.until(ready + ` && document.querySelector("#status").textContent === "training"`)
	s.server.Close() // as if it were killed
	b.until(`!document.querySelector("#lost").hidden`)
	b.shows("#status", "no answer")
	b.shows("#work", "training at ")
	b.shows("#lost", "has not answered since ", "It ends with its run.", "xtts-host view "+dir)
	b.axe()
}

// TestLastState: who watches a run when it ends is told how it has ended, and one who does not read holds nothing up.
func TestLastState(t *testing.T) {
	s, bus := liveServer(t)
	bus.Publish(&event.Phase{Phase: event.Training})
	bus.Flush()
	in := stream(t, s)
	if first := message(t, in, "state"); first["status"] != "training" {
		t.Errorf("%v", first)
	}
	c, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /api/runs/0/events HTTP/1.1\r\nHost: %s\r\n\r\n", s.listener.Addr())
	write(t, s.all()[0].Folder(), rundir.ReportFile, []byte(`{"outcome":"done","steps":2}`))
	bus.Close()
	for last := ""; last != "done"; {
		last = fmt.Sprint(message(t, in, "state")["status"])
	}
}

// TestEndDuringAMessage: a page that is sent a message when the run ends gets the last state, too.
func TestEndDuringAMessage(t *testing.T) {
	s, bus := liveServer(t)
	bus.Publish(&event.Phase{Phase: event.Training})
	bus.Flush()
	write(t, s.all()[0].Folder(), rundir.ReportFile, []byte(`{"outcome":"done","steps":2}`))
	w := &flushed{ResponseRecorder: httptest.NewRecorder(), then: sync.OnceFunc(func() { bus.Close() })}
	s.events(w, httptest.NewRequest("GET", "/api/runs/0/events", nil), s.all()[0])
	if body := w.Body.String(); strings.Count(body, "event: state") != 2 || !strings.Contains(body, `"status":"done"`) {
		t.Error(body)
	}
}

// flushed calls a function each time that something was sent.
type flushed struct {
	*httptest.ResponseRecorder
	then func()
}

func (f *flushed) Flush() { f.then() }

// TestLongTexts: of a long text, the page shows the beginning and a way to all of it. Shares have their sign.
func TestLongTexts(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("many words ", 100)
	write(t, dir, rundir.MetricsFile, []byte(`{"step":1,"loss":2}`+"\n"))
	write(t, dir, rundir.LogFile, []byte(`{"level":"WARN","msg":"`+long+`the end of the line"}`+"\n"))
	var spoken strings.Builder
	for step, wer := range []float64{0.5, 0.25} {
		fmt.Fprintf(&spoken, `{"step":%d,"clip":1,"text":"%sthe end of the text","measures":{"wer":%g,"mcd_db":7}}`+"\n",
			step+1, long, wer)
	}
	write(t, dir, rundir.SpokenFile, []byte(spoken.String()))
	s := serve(t, Config{Runs: []string{dir}})
	b := browse(t, s.listener.Addr().String())
	b.open(s.URL(), "light", 400)
	b.until(`document.querySelectorAll("#measures canvas").length === 2 &&
		document.querySelectorAll("#log-body .long").length === 1`)
	b.lacks("#log-body", "the end of the line")
	b.lacks("#samples", "the end of the text")
	b.axe()
	b.do(chromedp.Click("#log-body .long summary", chromedp.ByQuery),
		chromedp.Click("#samples summary", chromedp.ByQuery))
	b.shows("#log-body", "the end of the line", "show less")
	b.shows("#samples", "the end of the text")
	b.shows("#measures", "25 %", "7 dB")
	said := b.value(`[...document.querySelectorAll("#measures .plot")].map((e) => e.ariaLabel).join()`)
	if !strings.Contains(fmt.Sprint(said), "from 50 % at step 1 to 25 % at step 2") {
		t.Error(said)
	}
	if what := b.value(wide); what != "" {
		t.Errorf("wider than the window: %s", what)
	}
	b.axe()
	b.right()
}

// TestSpeakBox: the box offers what the model needs: a recording of the run or of the reader, or none. A run that
// cannot speak says why, in place of the box.
func TestSpeakBox(t *testing.T) {
	dir := large(t, 60, 12)
	sound := filepath.Join(t.TempDir(), "mine.wav")
	write(t, filepath.Dir(sound), "mine.wav", tone())
	got := filepath.Join(t.TempDir(), "got")
	if err := os.RemoveAll(filepath.Join(dir, rundir.SpokenFile)); err != nil {
		t.Fatal(err)
	}
	s := serve(t, Config{
		Runs: []string{dir, dir + "/", dir + "/."}, Program: program(t, "cat /proc/self/fd/3 >"+got+"; cat "+sound),
		Asks: func(folder string) (bool, error) {
			switch {
			case strings.HasSuffix(folder, "/."):
				return false, errors.New("the bundle of the run, tiny, has no graphs that speak")
			case strings.HasSuffix(folder, "/"):
				return false, nil
			}
			return true, nil
		},
	})
	b := browse(t, s.listener.Addr().String())
	b.open(s.URL()+"runs/0", "light", 400)
	b.until(`!document.querySelector("#speak").hidden`)
	b.shows("#speak-voice", "a recording of your own")
	b.do(chromedp.SendKeys("#speak-text", "Good morning.", chromedp.ByQuery),
		chromedp.Click("#speak-go", chromedp.ByQuery))
	b.until(`document.querySelector("#speak-status").innerText === "Choose the file of your recording first."`)
	b.axe()
	b.do(chromedp.SetUploadFiles("#speak-file", []string{sound}, chromedp.ByQuery),
		chromedp.Click("#speak-go", chromedp.ByQuery))
	b.until(`document.querySelectorAll("#spoken audio").length === 1`)
	if data, err := os.ReadFile(got); err != nil || string(data) != string(tone()) {
		t.Errorf("the program got %d bytes: %v", len(data), err)
	}
	line := `{"step":60,"clip":1,"id":"a","text":"a","file":"samples/step-000060/clip-1.wav",` +
		`"reference":"samples/reference/clip-1.wav","measures":{}}` + "\n"
	write(t, dir, rundir.SpokenFile, []byte(line)) // it is offered, and nobody has chosen another one
	b.until(`document.querySelector("#speak-voice").value === "samples/reference/clip-1.wav"`)
	if b.value(`document.querySelector("#speak-file-box").hidden`) != true {
		t.Error("a file is asked for")
	}
	b.open(s.URL()+"runs/1", "light", 400)
	b.until(`!document.querySelector("#speak").hidden`)
	b.lacks("#speak", "Voice", "recording")
	b.open(s.URL()+"runs/2", "light", 400)
	b.until(`!document.querySelector("#speak-lacks").hidden`)
	b.shows("#speak-lacks", "No sentence can be spoken here: the bundle of the run, tiny, has no graphs that speak.")
	if b.value(`document.querySelector("#speak").hidden`) != true {
		t.Error("there is a box")
	}
	b.right()
}

// TestOwnRecording: a recording that is too large, or beside one of the run, is refused. What the program says names
// what the page has, and no flag.
func TestOwnRecording(t *testing.T) {
	s := serve(t, Config{Runs: []string{small(t)}, Program: program(t,
		`echo "error: --speaker /proc/self/fd/3: no sound
hint: for example: --speaker me.wav
hint: record it again" >&2; exit 2`)})
	order := func(data []byte, rest string) (int, string) {
		body := fmt.Sprintf(`{"text":"a","checkpoint":"best",%s"recording":%q}`, rest,
			base64.StdEncoding.EncodeToString(data))
		status, _, text := ask(t, s, "POST", "/api/runs/0/speak", body, "Sec-Fetch-Site: same-origin")
		return status, text
	}
	const want = "Voice: no sound; hint: record it again\n"
	if status, text := order([]byte("RIFF"), ""); status != 422 || text != want {
		t.Errorf("%d %q", status, text)
	}
	if status, text := order([]byte("RIFF"), `"voice":"samples/step-000002/1.wav",`); status != 400 {
		t.Errorf("two voices: %d %s", status, text)
	}
	if status, text := order(make([]byte, mostVoice+1<<20), ""); status != 400 {
		t.Errorf("too large: %d %s", status, text)
	}
	if status, text := order(make([]byte, mostVoice), ""); status != 422 {
		t.Errorf("the largest: %d %s", status, text)
	}
}

// TestAddressOfAll: an address of all networks is printed as one that others can open, which needs no name.
func TestAddressOfAll(t *testing.T) {
	s := serve(t, Config{Runs: []string{small(t)}, Address: free(t, "0.0.0.0")})
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if ownAddress() != "" && (err != nil || ip.IsUnspecified() || ip.IsLoopback()) {
		t.Errorf("%s: %v", s.URL(), err)
	}
	if status, _, _ := ask(t, s, "GET", "/api/runs", "", "Host: "+u.Host); status != 401 {
		t.Errorf("by %s: %d", u.Host, status)
	}
}
