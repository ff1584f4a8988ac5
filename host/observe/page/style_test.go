package page

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// colour is red, green and blue, each from 0 to 1.
type colour [3]float64

// luminance and contrast are those of the Web Content Accessibility Guidelines 2.2.
func (c colour) luminance() (sum float64) {
	for i, weight := range [3]float64{0.2126, 0.7152, 0.0722} {
		linear := c[i] / 12.92
		if c[i] > 0.04045 {
			linear = math.Pow((c[i]+0.055)/1.055, 2.4)
		}
		sum += weight * linear
	}
	return sum
}

func contrast(a, b colour) float64 {
	high, low := max(a.luminance(), b.luminance()), min(a.luminance(), b.luminance())
	return (high + 0.05) / (low + 0.05)
}

// over is a colour that covers a part of what is behind it.
func (c colour) over(ground colour, opacity float64) (out colour) {
	for i := range c {
		out[i] = opacity*c[i] + (1-opacity)*ground[i]
	}
	return out
}

// schemes are the values of the style sheet in light and in dark.
func schemes(t *testing.T) map[string]map[string]string {
	t.Helper()
	blocks := regexp.MustCompile(`(?s):root\{([^}]*)\}`).FindAllStringSubmatch(style, 2)
	if len(blocks) != 2 || !strings.Contains(style, "@media screen and (prefers-color-scheme:dark){:root{") {
		t.Fatal("the style sheet has not two schemes of colours")
	}
	all := map[string]map[string]string{"light": {}, "dark": {}}
	for i, block := range blocks {
		for _, m := range regexp.MustCompile(`--(\w+):([^;]+)`).FindAllStringSubmatch(block[1], -1) {
			if all["dark"][m[1]] = m[2]; i == 0 {
				all["light"][m[1]] = m[2]
			}
		}
	}
	return all
}

// TestContrast: texts have a contrast of 4.5 to their ground, and curves, bars and frames one of 3, in light and dark
// (WCAG 2.2, level AA).
func TestContrast(t *testing.T) {
	for scheme, values := range schemes(t) {
		of := func(name string) (c colour) {
			text := strings.TrimPrefix(values[name], "#")
			if len(text) == 3 {
				text = string([]byte{text[0], text[0], text[1], text[1], text[2], text[2]})
			}
			v, err := strconv.ParseUint(text, 16, 24)
			if err != nil || len(text) != 6 {
				t.Fatalf("%s: --%s is %q", scheme, name, values[name])
			}
			return colour{float64(v>>16) / 255, float64(v>>8&255) / 255, float64(v&255) / 255}
		}
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(values[name], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		demand := func(least float64, what string, front, ground colour) {
			t.Helper()
			if got := contrast(front, ground); got < least {
				t.Errorf("%s: %s has a contrast of %.2f, less than %g", scheme, what, got, least)
			}
		}
		for _, ground := range []string{"bg", "card"} {
			for _, text := range []string{"text", "muted", "link"} {
				demand(4.5, text+" on "+ground, of(text), of(ground))
			}
		}
		for _, tone := range []string{"good", "warn", "bad", "info"} {
			for _, text := range []string{tone, "text", "link"} {
				demand(4.5, text+" on "+tone+"bg", of(text), of(tone+"bg"))
			}
			demand(3, "the frame of "+tone, of(tone), of("bg"))
		}
		card := of("card")
		track := of("line").over(card, 0.55)
		for _, c := range []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7"} {
			demand(4.5, c+" as a name on card", of(c), card)
			demand(3, "a bar of "+c, of(c), track)
			demand(3, "a thin line of "+c, of(c).over(card, 0.9), card)
			demand(3, "a band of "+c, of(c).over(card, number("faint")), card)
		}
		demand(3, "the limit on a bar's ground", of("text"), track)
		demand(3, "the limit on its halo", of("text"), card)
		demand(3, "an axis", of("muted"), card)
	}
	for _, rule := range []string{
		".thin{stroke-width:1.4;opacity:.9}", ".faint{stroke-width:1;opacity:var(--faint)}",
		".track{fill:var(--line);opacity:.55}", ".halo,.chart .cut{stroke:var(--card)", ".limit{stroke:var(--text)",
		".chart text{unicode-bidi:plaintext}", ":focus-visible{outline:2px solid var(--link)",
	} {
		if !strings.Contains(style, rule) {
			t.Errorf("the style has no rule %s", rule)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"Raise --num-workers.":      `Raise <span class="flag">--num-workers</span>.`,
		"(--lr, --eval-every 5)":    `(<span class="flag">--lr</span>, <span class="flag">--eval-every</span> 5)`,
		"a--b ---c --<b> --":        "a--b ---c --&lt;b&gt; --",
		"1.5 s/step of a.b":         "1.5 s/step of a.b",
		"gradient/decoder.0.weight": "gradient/<wbr>decoder<wbr>.0<wbr>.weight",
		"<b>/<script>//..alert(1).": "&lt;b&gt;/<wbr>&lt;script&gt;//<wbr>.<wbr>.alert(1).",
		"/home/anna/.cache/a.wav":   "/<wbr>home/<wbr>anna/<wbr><wbr>.cache/<wbr>a<wbr>.wav",
		"سلام --lr دنیا":            `سلام <span class="flag">--lr</span> دنیا`,
	} {
		if got := string(words(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	long := "--" + strings.Repeat("a", 200)
	if got := string(words(long)); got != long {
		t.Errorf("a word that has no room in a line may not break: %s", got)
	}
}

func TestLang(t *testing.T) {
	for name, want := range map[string]string{
		"fa": "fa", "zh-cn": "zh-cn", "zh_Hans_CN": "zh-Hans-CN", "": "", "x": "", "english": "", `"><b>`: "", "en fa": "",
	} {
		if got := lang(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
