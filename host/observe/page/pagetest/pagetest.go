// Package pagetest gives tests of pages the run folder of a hostile stranger, and holds pages to the elements that they
// may have.
package pagetest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Hostile are texts that a stranger may have put anywhere in a run folder.
var Hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, `' onmouseover='alert(1)`,
	"\u202egnp.exe\u2066", "nul\x00bell\x07esc\x1b[31m", strings.Repeat("w", 500), "\xff\xfe not UTF-8 \xc3",
	`</style><style>*{display:none}</style>`, `{{.Run}} {{"x"}}`, `<!-- `, `]]>`, `</svg></title><script>`, "سلام دنیا",
	`data:text/html,<script>alert(1)</script>`, strings.Repeat("长", 3000),
}

// filler fills every field of a value with what is hostile or extreme.
type filler struct {
	of     []string
	texts  int
	number float64
}

func (f *filler) text() string {
	f.texts++
	return f.of[f.texts%len(f.of)]
}

func (f *filler) fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Float64:
		v.SetFloat(f.number)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(min(max(f.number, math.MinInt32), math.MaxInt32)))
	case reflect.Bool:
		v.SetBool(f.number > 0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		n := 3
		if depth > 6 {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, depth+1)
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				f.fill(v.Field(i), depth+1)
			}
		}
	}
}

// HostileRun writes a run folder of a stranger, in which each number is this one.
func HostileRun(t *testing.T, number float64) string { return RunOf(t, number, Hostile) }

// RunOf is HostileRun with these texts instead.
func RunOf(t *testing.T, number float64, texts []string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), `javascript:alert(1)"><script> سلام`)
	f := &filler{of: texts, number: number}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	object := func(values map[string]any) string {
		b, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	var r report.Report
	f.fill(reflect.ValueOf(&r).Elem(), 0)
	text, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	write("report.json", string(text))
	var metrics, evals, spoken, probes, quarantine, settings strings.Builder
	for i, text := range texts {
		step := 10 * (i + 1)
		metrics.WriteString(object(map[string]any{"step": step, "loss": number, "lr": number, "grad_norm": -number,
			"step_ms": number, "frames": 1 << 40, "samples": -5, text: 1}))
		evals.WriteString(object(map[string]any{"step": step, "loss": number, text: number, "samples": -3}))
		spoken.WriteString(object(map[string]any{"step": 10 + 20*(i/6), "clip": i%6 + 1, "id": text, "text": text,
			"language": text, "file": "samples/step-000010/1.wav", "reference": text,
			"picture": "samples/reference/a.png",
			"seconds": number, "ended": false, "measures": map[string]any{text: number, "mcd_db": number,
				"wer": text}}))
		probes.WriteString(object(map[string]any{"step": 10, "name": text, "shape": []int{-1, 1 << 40}, "mean": number,
			"min": number, "max": number, "not_finite": -1, "counts": []float64{number, number}, "picture": text}))
		quarantine.WriteString(object(map[string]any{"id": text, "reason": text, "stage": text}))
		fmt.Fprintf(&settings, "batch_size: %s  # %s\n", strings.ReplaceAll(text, "\n", " "), text)
	}
	write("metrics.jsonl", metrics.String())
	write("eval.jsonl", evals.String())
	write("spoken.jsonl", spoken.String())
	write("probes.jsonl", probes.String())
	write("quarantine.jsonl", quarantine.String())
	write("config.yaml", settings.String())
	write("samples/step-000010/1.wav", Wave)
	write("samples/reference/a.png", "<svg onload=alert(1)>")
	return dir
}

// Wave is an empty recording.
const Wave = "RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\xbb\x00\x00" +
	"\x00\x77\x01\x00\x02\x00\x10\x00data\x00\x00\x00\x00"

// elements are those of a page, with the attributes that they may have.
var elements = map[string]string{
	"html": "lang", "head": "", "meta": "charset http-equiv content name", "title": "", "style": "",
	"body": "", "header": "", "h1": "", "bdi": "", "wbr": "", "span": "class", "p": "class dir",
	"nav": "aria-label", "a": "href", "main": "", "section": "aria-labelledby", "h2": "id", "h3": "dir lang",
	"h4": "", "div": "class tabindex role aria-label", "strong": "", "ul": "", "li": "dir", "dl": "class",
	"dt": "", "dd": "", "small": "dir", "table": "", "caption": "dir", "thead": "", "tbody": "", "tr": "",
	"th": "scope class dir", "td": "class dir", "figure": "class", "figcaption": "dir", "article": "class",
	"audio": "controls preload aria-label src", "img": "src alt", "details": "", "summary": "",
	"footer": "", "svg": "class viewbox role aria-label",
	"path": "vector-effect class d", "text": "class x y text-anchor",
	"circle": "class cx cy r", "rect": "class x y width height rx",
}

var void = []string{"meta", "img", "wbr"}

// Check holds a page to the elements above, to what HTML demands, and to what an accessible page has. It returns
// the text that it shows.
func Check(t *testing.T, page string) string {
	t.Helper()
	if !utf8.ValidString(page) {
		t.Error("the page is not UTF-8")
	}
	var shown strings.Builder
	var open []html.Token
	ids, targets, level := map[string]bool{}, []string{}, 0
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		token := z.Token()
		switch kind {
		case html.CommentToken:
			t.Errorf("a comment: %q", token.Data)
		case html.TextToken:
			if len(open) > 0 && open[len(open)-1].Data == "style" {
				continue
			}
			shown.WriteString(token.Data)
			if strings.ContainsFunc(token.Data, rightToLeft) && !directed(open) {
				t.Errorf("%q may be written from right to left, and is in %q without a direction of its own",
					token.Data, names(open))
			}
			if plain := strings.ReplaceAll(token.Data, "\n", ""); visible.Text(plain) != plain {
				t.Errorf("hidden characters in %q", token.Data)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			checkElement(t, token)
			if name := token.Data; len(name) == 2 && name[0] == 'h' && name != "hr" {
				if to := int(name[1] - '0'); to > level+1 {
					t.Errorf("heading %s after level %d", name, level)
				} else {
					level = to
				}
			}
			for _, a := range token.Attr {
				if a.Key == "id" {
					if ids[a.Val] {
						t.Errorf("two elements have the id %q", a.Val)
					}
					ids[a.Val] = true
				}
				if a.Key == "aria-labelledby" || a.Key == "href" && strings.HasPrefix(a.Val, "#") {
					targets = append(targets, strings.TrimPrefix(a.Val, "#"))
				}
			}
			if kind == html.StartTagToken && !slices.Contains(void, token.Data) {
				open = append(open, token)
			}
		case html.EndTagToken:
			if n := len(open) - 1; n < 0 || open[n].Data != token.Data {
				t.Fatalf("</%s> closes %q", token.Data, names(open))
			} else {
				open = open[:n]
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("not closed: %q", names(open))
	}
	for _, id := range targets {
		if !ids[id] {
			t.Errorf("nothing has the id %q", id)
		}
	}
	return shown.String()
}

func rightToLeft(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana)
}

// directed says that a text in these elements has a direction of its own: what follows it, such as a number or a full
// stop, is not drawn into it. The titles of pages have none; those of charts have it by the style of the page.
func directed(open []html.Token) bool {
	return slices.ContainsFunc(open, func(in html.Token) bool {
		switch in.Data {
		case "bdi", "svg", "title":
			return true
		}
		return slices.Contains(in.Attr, html.Attribute{Key: "dir", Val: "auto"})
	})
}

func names(open []html.Token) (list []string) {
	for _, in := range open {
		list = append(list, in.Data)
	}
	return list
}

func checkElement(t *testing.T, token html.Token) {
	t.Helper()
	allowed, ok := elements[token.Data]
	if !ok {
		t.Errorf("an element <%s>: %.200s", token.Data, token.String())
		return
	}
	values := map[string]string{}
	for _, a := range token.Attr {
		values[a.Key] = a.Val
		if !slices.Contains(strings.Fields(allowed), a.Key) {
			t.Errorf("an attribute %s of <%s>: %.200s", a.Key, token.Data, token.String())
		}
		if visible.Text(a.Val) != a.Val {
			t.Errorf("hidden characters in %q", a.Val)
		}
		if strings.Contains(a.Val, "NaN") || strings.Contains(a.Val, "Inf") {
			t.Errorf("a coordinate that is no number: %.200s", token.String())
		}
	}
	starts := func(text string, with ...string) bool {
		return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(text, w) })
	}
	switch token.Data {
	case "a":
		if !starts(values["href"], "#", "./", "/") {
			t.Errorf("a link to %q", values["href"])
		}
	case "audio":
		if !starts(values["src"], "data:audio/wav;base64,") || values["aria-label"] == "" {
			t.Errorf("a sound from %q with the name %q", values["src"], values["aria-label"])
		}
	case "img":
		if !starts(values["src"], "data:image/png;base64,") || values["alt"] == "" {
			t.Errorf("a picture from %q, instead of it %q", values["src"], values["alt"])
		}
	case "svg":
		if values["role"] != "img" || len(values["aria-label"]) < 10 {
			t.Errorf("a picture without a description: %v", values)
		}
	case "th":
		if values["scope"] == "" {
			t.Error("a head of a table without a scope")
		}
	}
}
