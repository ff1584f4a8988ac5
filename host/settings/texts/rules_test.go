package texts

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ rules, language, in, want string }{
		{"letters", "fa", "علي كتاب ۀ ـــ هـــا", "علی کتاب ه\u0654  ها"},
		{"letters:fa", "", "علي", "علی"},
		{"letters:fa", "ar", "علي کتاب", "علي كتاب"}, // the language of the line comes first
		{"letters", "", "علي", "علي"},
		{"letters", "fas", "كي", "کی"},
		{"letters", "fa-IR", "كي", "کی"},
		{"letters", "ar", "کتابی یوم علی مستشفى", "كتابی يوم علی مستشفى"}, // a last yeh may be either
		{"letters", "ur", "ه ك ي ھ", "ہ ک ی ھ"},
		{"letters", "ps", "ي ی ك", "ي ی ک"},
		{"letters", "ckb", "ە ه ي", "ە ه ی"},
		{"letters", "ro", "şi ţară", "și țară"},
		{"letters", "tr", "şimdi", "şimdi"},
		{"digits", "", "١٢ ۱۲ १२ １２ 12 ٣٫٥ ٣٬٠٠٠ ٪٥ ٫", "12 12 12 12 12 3.5 3,000 %5 ٫"},
		{"forms", "", "ﬁne Ａｂｃ１！ ｶﾞ ﻻ ﷲ ǆ ½ x² ™", "fine Abc1! ガ لا الله dž ½ x² ™"},
		{"forms", "", "ﺳﻼم", "سلام"},
		{"invisible", "", "a\u200bb\u00adc\u202ed\u2066e\ufe0f", "abcde"},
		{"invisible", "", "می\u200cروم", "می\u200cروم"},
		{"invisible", "", "می\u200c\u200cروم کار\u200cها ها\u200c \u200cو", "می\u200cروم کارها ها و"},
		{"invisible", "", "می\u200f\u200cروم", "می\u200cروم"},
		{"invisible", "", "USB\u200cها Auf\u200clage", "USBها Auflage"},
		{"invisible", "", "क\u094d\u200dष र\u094d\u200cय", "क\u094d\u200dष र\u094d\u200cय"},
		{"invisible", "", "👨\u200d👩", "👨\u200d👩"},
		{"invisible,letters", "ar", "\u0640\u200d ا\u0640\u200cب ب\u200c\u0640 ب\u0640\u200cب", "اب ب ب\u200cب"},
		{"punctuation", "", "‘a’ “b” c‑d − e… – —", `'a' "b" c-d - e... – —`},
		{"spaces", "", "a\u00a0b\u3000 c\u2009d  e\u2028f", "a b c d e f"},
		{"all:fa", "", "\u200fكتاب\u200cهاي\u00a0١٢", "کتاب\u200cهای 12"},
		{"none", "fa", "علي ١", "علي ١"},
	} {
		r, err := Parse(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Text(c.in, c.language); got != c.want {
			t.Errorf("%s %s: %q is %+q, want %+q", c.rules, c.language, c.in, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"": "none", "none": "none", "digits, letters": "letters,digits",
		"all":       "forms,invisible,letters,digits,punctuation,spaces",
		"all:fa-IR": "forms,invisible,letters:fa,digits,punctuation,spaces", "letters:fas": "letters:fa",
	} {
		r, err := Parse(in)
		if err != nil || r.String() != want {
			t.Errorf("%q is %v, %v, want %s", in, r, err, want)
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%v is read as %v, %v", r, again, err)
		}
	}
	for in, want := range map[string]string{
		"digit": `there is no rule "digit"`, "digits:fa": "digits takes no language", "letters:": `"" is no language`,
		"letters:x y": `"x y" is no language`, ",": `there is no rule ""`,
	} {
		if _, err := Parse(in); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// TestDigits: every decimal digit has its value; the compatibility forms of 0 to 9 say so independently.
func TestDigits(t *testing.T) {
	zeros := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		v, ok := Digit(r)
		if ok != unicode.Is(unicode.Nd, r) {
			t.Errorf("%U: %v", r, ok)
		}
		if k := norm.NFKC.String(string(r)); ok && len(k) == 1 && k[0] != '0'+byte(v) {
			t.Errorf("%U has the value %d, want %s", r, v, k)
		}
		if ok && v == 0 {
			zeros++
		}
	}
	if n := count(unicode.Nd); zeros*10 != n {
		t.Errorf("%d zeros among %d digits", zeros, n)
	}
}

func count(t *unicode.RangeTable) (n int) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.Is(t, r) {
			n++
		}
	}
	return n
}

// TestWritten: no letter that a language writes is replaced in it.
func TestWritten(t *testing.T) {
	for language, letters := range map[string]string{ // main exemplar characters of CLDR
		"fa": "ءآأؤئابپتةثجچحخدذرزژسشصضطظعغفقکگلمنوهی",
		"ar": "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي",
		"ur": "اأآبپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوؤہھءیئے",
		"ro": "aăâbcdefghiîjklmnopqrsștțuvwxyz",
	} {
		if got := foldLetters(letters, language); got != letters {
			t.Errorf("%s: %s", language, got)
		}
		if !Written(language) {
			t.Errorf("%s is not known", language)
		}
	}
	if Written("") || Written("en") {
		t.Error("English is known")
	}
}

// FuzzText: the rules do not change what they have written, and write composed UTF-8.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"علي\u200cها", "ﷲ ﬁ ｶﾞ", "a\u00adb \u200c", "ي\u0640\u0654", "\u0649\u0654\u200d", "٣٫٫٥", "\u06c1\u00ad\u0654",
		"\u0640\u200d", "ا\u0640\u200cب", "ب\u200c\u0640",
	} {
		f.Add(s, uint8(63), "fa")
		f.Add(s, uint8(63), "ar")
		f.Add(s, uint8(63), "ur")
	}
	f.Fuzz(func(t *testing.T, text string, on uint8, language string) {
		if !utf8.ValidString(text) {
			return
		}
		text = norm.NFC.String(text)
		r := Rules{rule(on) & All("").on, ""}
		once := r.Text(text, language)
		if !utf8.ValidString(once) || r.on != 0 && !norm.NFC.IsNormalString(once) {
			t.Errorf("%+q", once)
		}
		if twice := r.Text(once, language); twice != once {
			t.Errorf("%v: %+q is %+q, then %+q", r, text, once, twice)
		}
		if r.on == All("").on && strings.ContainsFunc(once, Hidden) {
			t.Errorf("%+q has hidden characters", once)
		}
	})
}
