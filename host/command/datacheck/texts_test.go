package datacheck

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestTexts: digits, forms of letters and digits, hidden characters, spellings and disguised words are found with their
// lines, and a text in Arabic script ends its line as it is.
func TestTexts(t *testing.T) {
	var list []recording
	for i, text := range []string{
		"علی کتاب می\u200cرود", "علي کتاب", "علی میرود ۱۲", "one 12", "the мoсква road", "a\u200bb ﬁne", "plain text",
		"می\u200cرود باز",
	} {
		list = append(list, recording{fmt.Sprintf("c%d", i+1), text, wav(tone(1, 0.25, 100+float64(i)), 1, 0)})
	}
	r := reportOf(t, anyLength, list...)
	x := r.Texts
	for _, c := range []struct{ name, got, want string }{
		{"digits", fmt.Sprintln(len(x.Digits), x.Digits[0].Line, x.Digits[1].Line), "2 {3 c3} {4 c4}"},
		{"digit forms", fmt.Sprintln(len(x.DigitForms), x.DigitForms[0].Code, x.DigitForms[1].Code), "2 U+06F0 U+0030"},
		{
			"letters",
			fmt.Sprintln(
				len(x.LetterForms), x.LetterForms[0][0].Texts, x.LetterForms[0][1].Code, x.LetterForms[0][1].First.Line,
			),
			"1 3 U+064A {2 c2}",
		},
		{"forms", fmt.Sprintln(len(x.Presentation), x.Presentation[0].Line), "1 {6 c6}"},
		{
			"invisible", fmt.Sprintln(len(x.Invisible), x.Invisible[0].Code, x.Invisible[0].First.Line),
			"1 U+200B {6 c6}",
		},
		{
			"spellings",
			fmt.Sprintf(
				"%d %d %d %v", len(x.NonJoiner), x.NonJoiner[0].WithCount, x.NonJoiner[0].WithoutCount,
				x.NonJoiner[0].First.Line,
			),
			"1 2 1 {3 c3}",
		},
		{"disguised", fmt.Sprintln(len(x.Disguised), x.Disguised[0].Line, x.Disguised[0].Word), "1 {5 c5} мoсква"},
		{"normalized", fmt.Sprint(x.Normalized, x.Unwritten), "2 [en]"},
	} {
		if strings.TrimSpace(c.got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
	var out strings.Builder
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- 2 texts with digits", "line 3, c3: علی میرود ۱۲\n", "- 1 letter with several forms",
		"U+06CC in 3 texts, U+064A in 1 text (en): the last first in line 2, c2: علي کتاب\n",
		"- 1 word with and without a zero-width non-joiner",
		"2 times with, 1 without, the rarer first in line 3, c3: می\u200cرود\n", "line 5, c5: \"мoсква\"\n",
		"- 2 texts that --normalize all would change; it knows no letters of en: name the language, as in " +
			"--normalize " +
			"all:fa\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	if r := reportOf(
		t, anyLength, list[6],
	); r.Texts.Normalized+len(r.Texts.Digits)+len(r.Texts.Disguised)+len(r.Texts.LetterForms) > 0 {
		t.Errorf("a plain text: %+v", r.Texts)
	}
}
