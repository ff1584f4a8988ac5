package datacheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/texts"
)

// Texts is what is unusual in the texts (docs/data-check.md).
type Texts struct {
	Digits       []TextLine  `json:"digits"`
	DigitForms   []Form      `json:"digit_forms"`
	LetterForms  [][]Form    `json:"letter_forms"`
	Presentation []TextLine  `json:"presentation_forms"`
	Invisible    []Form      `json:"invisible"`
	NonJoiner    []Spellings `json:"non_joiner"`
	Disguised    []TextLine  `json:"disguised_words"`
	// Normalized counts the texts that --normalize all would change.
	Normalized int `json:"normalized"`
	// Unwritten are languages of LetterForms of which the rule letters knows no letters.
	Unwritten []string `json:"unwritten_languages"`
}

// TextLine is a line with its text.
type TextLine struct {
	Line
	Text string `json:"text"`
	Word string `json:"word,omitempty"` // of the text
}

// Form is a character with the texts that have it.
type Form struct {
	Char     string   `json:"char"`
	Code     string   `json:"code"`
	Language string   `json:"language,omitempty"`
	Texts    int      `json:"texts"`
	First    TextLine `json:"first"`
}

// Spellings are two forms of a word, of which one has a zero-width non-joiner.
type Spellings struct {
	With         string   `json:"with"`
	Without      string   `json:"without"`
	WithCount    int      `json:"with_count"`
	WithoutCount int      `json:"without_count"`
	First        TextLine `json:"first"` // with the rarer one
}

// counted are characters in the order in which they are found.
type counted struct {
	key  string // of those that are compared
	list []Form
	last []int // the row in which each was last counted
}

// add counts a character of a row.
func (c *counted) add(r rune, language string, row int, line TextLine) {
	at := slices.IndexFunc(c.list, func(f Form) bool { return f.Char == string(r) })
	if at < 0 {
		at = len(c.list)
		c.list = append(c.list, Form{Char: string(r), Code: fmt.Sprintf("U+%04X", r), Language: language, First: line})
		c.last = append(c.last, -1)
	}
	if c.last[at] != row {
		c.last[at] = row
		c.list[at].Texts++
	}
}

// several returns the lists with more than one form, the commonest form first.
func several(all []*counted) [][]Form {
	out := [][]Form{}
	for _, c := range all {
		if len(c.list) > 1 {
			slices.SortStableFunc(c.list, func(a, b Form) int { return cmp.Compare(b.Texts, a.Texts) })
			out = append(out, c.list)
		}
	}
	return out
}

// textsOf looks at the texts of rows.
func textsOf(ix *dataset.Index, rows []int) Texts {
	t := Texts{
		Digits: []TextLine{}, DigitForms: []Form{}, Presentation: []TextLine{}, Invisible: []Form{},
		Disguised: []TextLine{}, Unwritten: []string{},
	}
	var numbers, hidden counted
	letters := map[string]*counted{} // by language and group
	var order []*counted
	for i, row := range rows {
		r := &ix.Rows[row]
		language, line := ix.Languages[r.LanguageID], TextLine{Line: Line{r.Line, r.ID}, Text: r.Text}
		digit, form := false, false
		for _, c := range r.Text {
			v, isDigit := texts.Digit(c)
			group := ""
			if c >= 0x80 && unicode.IsLetter(c) {
				group = texts.Alike(c)
			}
			switch {
			case isDigit:
				digit = true
				numbers.add(c-rune(v), "", i, line)
			case group != "":
				key := language + " " + group
				if letters[key] == nil {
					letters[key] = &counted{key: key}
					order = append(order, letters[key])
				}
				letters[key].add(c, language, i, line)
			case texts.Hidden(c):
				hidden.add(c, "", i, line)
			}
			form = form || texts.Presentation(c)
		}
		if digit {
			t.Digits = append(t.Digits, line)
		}
		if form {
			t.Presentation = append(t.Presentation, line)
		}
		for _, word := range texts.Words(r.Text) {
			if texts.Disguised(word) {
				with := line
				with.Word = word
				t.Disguised = append(t.Disguised, with)
			}
		}
		if texts.All("").Text(r.Text, language) != r.Text {
			t.Normalized++
		}
	}
	if forms := several([]*counted{&numbers}); len(forms) > 0 {
		t.DigitForms = forms[0]
	}
	t.LetterForms = several(order)
	for _, forms := range t.LetterForms {
		if l := forms[0].Language; !texts.Written(l) && !slices.Contains(t.Unwritten, l) {
			t.Unwritten = append(t.Unwritten, l)
		}
	}
	t.Invisible = append(t.Invisible, hidden.list...)
	t.NonJoiner = spellings(ix, rows)
	return t
}

// spellings returns the words that occur with and without a zero-width non-joiner, in the order of their first places.
func spellings(ix *dataset.Index, rows []int) []Spellings {
	found := map[string]*Spellings{} // by the word without
	firsts := map[string][2]TextLine{}
	var order []*Spellings
	each := func(do func(word string, line TextLine)) {
		for _, row := range rows {
			r := &ix.Rows[row]
			for _, word := range texts.Words(r.Text) {
				do(strings.Trim(word, "\u200C\u200D"), TextLine{Line: Line{r.Line, r.ID}, Text: r.Text})
			}
		}
	}
	each(func(word string, line TextLine) {
		joined := texts.Joined(word)
		if joined == word {
			return
		}
		s := found[joined]
		if s == nil {
			s = &Spellings{With: word, Without: joined}
			found[joined], firsts[joined] = s, [2]TextLine{line}
			order = append(order, s)
		}
		s.WithCount++
	})
	each(func(word string, line TextLine) {
		if s := found[word]; s != nil {
			if s.WithoutCount++; s.WithoutCount == 1 {
				firsts[word] = [2]TextLine{firsts[word][0], line}
			}
		}
	})
	out := []Spellings{}
	for _, s := range order {
		if s.WithoutCount == 0 {
			continue
		}
		s.First = firsts[s.Without][0]
		if s.WithoutCount < s.WithCount {
			s.First = firsts[s.Without][1]
		}
		out = append(out, *s)
	}
	return out
}
