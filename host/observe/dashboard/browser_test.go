package dashboard

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/page/pagetest"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

//go:embed testdata/axe.min.js
var axe string

var screenshots = flag.String("screenshots", "", "folder for the pictures of docs/dashboard.md")

// tab is a page in a browser. It keeps what went wrong there.
type tab struct {
	context.Context
	t *testing.T

	mu        sync.Mutex // guards what follows
	wrong     []string
	elsewhere []string // addresses that were asked for, but for those of the server
}

// browse opens a browser; the test is skipped on a machine without Chromium.
func browse(t *testing.T, at string) *tab {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		t.Skip("there is no Chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{Context: ctx, t: t}
	own := "http://" + at + "/"
	chromedp.ListenTarget(ctx, func(e any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			b.wrong = append(b.wrong, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				b.wrong = append(b.wrong, fmt.Sprintf("%s: %s", e.Type, e.Args[0].Value))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
				b.wrong = append(b.wrong, e.Entry.Text+" "+e.Entry.URL)
			}
		case *page.EventJavascriptDialogOpening:
			b.wrong = append(b.wrong, "a dialog: "+e.Message)
		case *network.EventRequestWillBeSent:
			// The pictures of the browser's own players are data.
			if !strings.HasPrefix(e.Request.URL, own) && !strings.HasPrefix(e.Request.URL, "data:image/svg+xml") {
				b.elsewhere = append(b.elsewhere, e.Request.URL[:min(len(e.Request.URL), 200)])
			}
		}
	})
	if err := chromedp.Run(ctx, log.Enable(),
		network.Enable()); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	return b
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b, 4*time.Minute) // against a browser that hangs
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens an address in a theme and a width, and waits until the curves are there.
func (b *tab) open(url, theme string, width int64) {
	b.t.Helper()
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}), chromedp.EmulateViewport(width, 800), chromedp.Navigate(url))
}

// until waits for an expression of the page.
func (b *tab) until(expression string) {
	b.t.Helper()
	b.do(chromedp.Poll(expression, nil, chromedp.WithPollingInterval(50*time.Millisecond),
		chromedp.WithPollingTimeout(3*time.Minute)))
}

// value is that of an expression of the page.
func (b *tab) value(expression string) (v any) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	return v
}

// right fails the test for what went wrong in the page since the last call.
func (b *tab) right() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.wrong {
		b.t.Errorf("the browser says: %s", text)
	}
	for _, url := range b.elsewhere {
		b.t.Errorf("the page has asked for %s", url)
	}
	b.wrong, b.elsewhere = nil, nil
}

// axe holds the page to the rules of axe-core.
func (b *tab) axe() {
	b.t.Helper()
	b.do(chromedp.Evaluate(axe+";0", nil))
	found := b.value(`axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) =>
		v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")))`)
	for _, v := range found.([]any) {
		b.t.Errorf("axe: %s", v)
	}
}

// wide reports what is wider than the window.
const wide = `[...document.querySelectorAll("body *")].filter((e) => !e.closest(".scroll, nav, .skip, .u-wrap") &&
	e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + "." + e.className).slice(0, 5).join()`

const ready = `document.documentElement.dataset.curves > 0 && document.querySelectorAll("#samples .take").length > 3 &&
	document.querySelectorAll("#log-body tr").length > 1`

// TestPage: a run of 100,000 steps and 2,000 samples appears in both themes and both widths without an error, by the
// rules of axe, and without a request to elsewhere.
func TestPage(t *testing.T) {
	s := serve(t, Config{Runs: []string{large(t, 100_000, 2000)}, Program: "/bin/false"})
	b := browse(t, s.listener.Addr().String())
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			b.open(s.URL(), theme, width)
			b.until(ready)
			t.Logf("%s, %d pixels: first paint after %v ms, curves after %v ms", theme, width,
				b.value(`Math.round(performance.getEntriesByName("first-contentful-paint")[0].startTime)`),
				b.value(`Math.round(performance.getEntriesByName("curves")[0].startTime)`))
			b.axe()
			if what := b.value(wide); what != "" {
				t.Errorf("%s, %d pixels: wider than the window: %s", theme, width, what)
			}
			b.right()
		}
	}
	b.open(s.URL(), "light", 1280)
	b.until(ready)
	for expression, want := range map[string]any{
		`document.querySelectorAll("#charts canvas").length`:                                                                6.0,
		`document.querySelectorAll("#samples h3[dir=auto][lang=fa]").length`:                                                1.0,
		`getComputedStyle(document.querySelector("#samples h3[lang=fa]")).direction`:                                        "rtl",
		`getComputedStyle(document.querySelector("#samples h3[lang=zh]")).direction`:                                        "ltr",
		`document.querySelector("#steps").textContent.split(" · ")[0]`:                                                      "step 100,000 of 100,000",
		`document.querySelectorAll("#clips tbody tr").length`:                                                               50.0,
		`[...document.querySelectorAll("[role=img]")].every((e) => e.getAttribute("aria-label"))`:                           true,
		`Number(performance.getEntriesByType("resource").find((e) => e.name.includes("/curves")).decodedBodySize < 400000)`: 1.0,
	} {
		if got := b.value(expression); got != want {
			t.Errorf("%s is %v, want %v", expression, got, want)
		}
	}
	b.keyboard()
	b.right()
}

// keyboard reads and zooms a chart, and plays a clip that is left out.
func (b *tab) keyboard() {
	b.t.Helper()
	b.do(chromedp.Focus("#charts .plot", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowLeft))
	if said := fmt.Sprint(b.value(`document.querySelector("#charts [role=status]").textContent`)); !strings.HasPrefix(said,
		"step ") || !strings.Contains(said, "training ") {
		b.t.Errorf("the arrow says %q", said)
	}
	b.do(chromedp.SetValue("#range", "1000", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector("#range").dispatchEvent(new Event("change"))`, nil))
	b.until(`document.querySelector("#charts .plot").getAttribute("aria-label").includes("at step 99,00")`)
	b.do(chromedp.Click("#charts summary", chromedp.ByQuery))
	b.until(`document.querySelectorAll("#charts details[open] tbody tr").length > 20`)
	b.do(chromedp.Click("#clips button", chromedp.ByQuery))
	b.until(`document.querySelector("#clips audio")?.readyState > 0`)
}

// TestHostilePage: nothing of the folder of a stranger becomes more than text.
func TestHostilePage(t *testing.T) {
	s := serve(t, Config{Runs: []string{pagetest.HostileRun(t, 12.5), pagetest.HostileRun(t, -1e308), small(t)}})
	b := browse(t, s.listener.Addr().String())
	b.open(s.URL(), "light", 1280)
	b.until(`document.querySelectorAll("#runs-body tbody tr").length === 3`)
	b.axe()
	b.right()
	for i := range 2 {
		b.open(s.URL()+fmt.Sprint("runs/", i), "dark", 390)
		b.until(`document.documentElement.dataset.curves !== undefined && document.querySelectorAll("#clips tbody tr").length > 10`)
		time.Sleep(300 * time.Millisecond) // for what a script would do
		if n := b.value(`document.querySelectorAll("script:not([src]), iframe, object, form:not(#speak), [onerror], [onload], style").length`); n != 0.0 {
			t.Errorf("%v elements are of the stranger", n)
		}
		b.mu.Lock()
		for _, text := range b.wrong { // sounds and pictures of the stranger are refused, and nothing else is wrong
			if !strings.Contains(text, "/media?") && !strings.Contains(text, "/spectrogram?") {
				t.Errorf("the browser says: %s", text)
			}
		}
		b.wrong = nil
		b.mu.Unlock()
		b.right()
	}
}

// TestLivePage: the page waits for the folder of the run of this process, shows its slots, speaks, and says when the
// server is gone.
func TestLivePage(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said.wav")
	write(t, filepath.Dir(said), "said.wav", voice(3, 0.9))
	dir := large(t, 900, 12)
	t.Chdir(filepath.Dir(dir)) // the page shows the path as it was named
	s := serve(t, Config{
		Program: program(t, "cat "+said), Asks: func(string) (bool, error) { return true, nil },
	})
	b := browse(t, s.listener.Addr().String())
	b.open(s.URL(), "light", 1280)
	b.until(`document.querySelector("#runs-body").textContent.includes("being prepared")`)
	b.axe()
	s.Show(filepath.Base(dir)) // the page opens by itself
	bus := event.NewBus()
	bus.Offer("dashboard", s, nil)
	bus.Publish(&event.Start{Total: 2000, Bundle: "xtts-v2", Device: "GPU 0: NVIDIA H100 PCIe"})
	bus.Publish(&event.Phase{Phase: event.Training})
	for step := int64(1); step < 30; step++ {
		bus.Publish(&event.Step{Step: 900 + step, Times: event.Times{Time: 96 * time.Millisecond,
			Train: 80 * time.Millisecond, Optimize: 12 * time.Millisecond, InputWait: 400 * time.Microsecond}})
	}
	bus.Publish(&event.Memory{Role: "Model", Device: "NVIDIA H100 PCIe", Used: 63 << 30, Limit: 72 << 30})
	bus.Publish(&event.Memory{Role: "Data", Device: "NVIDIA L4", Used: 2 << 30, Limit: 8 << 30})
	s.Watch(func() Live { return insideOf(bus) })
	for path := ""; path != "/runs/0" && b.Err() == nil; time.Sleep(50 * time.Millisecond) {
		chromedp.Run(b, chromedp.Evaluate("location.pathname", &path)) // it fails while the page goes there
	}
	b.until(`document.querySelectorAll(".batch").length === 19`)
	b.until(ready)
	if label := fmt.Sprint(b.value(`document.querySelector(".flow").getAttribute("aria-label")`)); !strings.Contains(label,
		"2 decode") || !strings.Contains(label, "1 training") {
		t.Error(label)
	}
	b.axe()
	b.do(chromedp.SendKeys("#speak-text", "Good morning.", chromedp.ByQuery), chromedp.Click("#speak-go",
		chromedp.ByQuery))
	b.until(`document.querySelectorAll("#spoken audio").length === 1`)
	b.until(`document.querySelector("#spoken img").naturalWidth > 100`)
	b.axe()
	b.right()
	if *screenshots != "" {
		b.pictures(s)
	}
	b.shows("#status", "training")
	bus.Close() // and the server
	b.until(`!document.querySelector("#lost").hidden`)
	b.shows("#status", "done") // as the report says
	b.shows("#lost", "It ends with its run. If the run has ended, xtts-host view shows it from its files: ",
		": xtts-host view "+filepath.Base(dir))
}

// insideOf is the inside of a run that trains.
func insideOf(bus *event.Bus) Live {
	l := Live{Snapshot: bus.Snapshot(), Ranks: 1}
	for i := range int64(16) {
		r := pipeline.RingLook{State: pipeline.Ready, Phase: 2, Step: 932 + i}
		switch {
		case i > 13:
			r = pipeline.RingLook{}
		case i > 9:
			r.State, r.Phase = pipeline.Preparing, int(13-i)%3
		}
		l.Look.Ring = append(l.Look.Ring, r)
	}
	l.Look.Device = []pipeline.DeviceLook{{State: pipeline.Training, Step: 930}, {State: pipeline.Ready, Step: 931},
		{State: pipeline.Preparing}}
	l.Stats.Batches = 10
	for i, name := range []string{"decode", "waveaug", "mel", "transfer"} {
		l.Stats.Phases = append(l.Stats.Phases, pipeline.Phase{Name: name,
			Busy: time.Duration(10*(3+2*i)) * time.Millisecond})
	}
	return l
}

// pictures takes the pictures of docs/dashboard.md.
func (b *tab) pictures(s *Server) {
	b.t.Helper()
	for _, p := range []struct {
		name, theme string
		width       int64
		at          string
	}{
		{"overview-light", "light", 1280, "#overview"}, {"overview-dark", "dark", 1280, "#overview"},
		{"speech-light", "light", 1280, "#speech"}, {"speech-dark", "dark", 1280, "#speech"},
		{"inside-light", "light", 1280, "#inside"}, {"inside-dark", "dark", 1280, "#inside"},
		{"phone-light", "light", 390, "#overview"}, {"phone-dark", "dark", 390, "#speech"},
	} {
		b.open(s.URL(), p.theme, p.width)
		b.until(ready + ` && document.querySelectorAll(".batch").length === 19`)
		var picture []byte
		b.do(chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).scrollIntoView()`, p.at), nil),
			chromedp.Sleep(2*time.Second), chromedp.ActionFunc(func(ctx context.Context) (err error) {
				picture,
					err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(cdp.WithExecutor(ctx,
					chromedp.FromContext(ctx).Target))
				return err
			}))
		write(b.t, *screenshots, p.name+".png", picture)
	}
}

// TestAxe: the rules are the file that its authors publish: axe-core 4.14.1 of the registry of npm.
func TestAxe(t *testing.T) {
	const want = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
	if sum := sha256.Sum256([]byte(axe)); hex.EncodeToString(sum[:]) != want {
		t.Errorf("the SHA-256 is %x", sum)
	}
}
