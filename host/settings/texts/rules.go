package texts

import (
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// rule is one change of texts.
type rule uint8

// The rules, in the order in which they are applied.
const (
	forms rule = 1 << iota
	invisible
	letters
	digits
	punctuation
	spaces
)

// named are the rules by name, in their order.
var named = []struct {
	name string
	rule rule
}{
	{"forms", forms}, {"invisible", invisible}, {"letters", letters}, {"digits", digits}, {"punctuation", punctuation},
	{"spaces", spaces},
}

// Rules are some of the rules. The zero value changes nothing.
type Rules struct {
	on       rule
	language string // of texts without one, for letters
}

// All are all rules, for texts of that language where they have none of their own; it may be empty.
func All(language string) Rules { return Rules{1<<len(named) - 1, base(language)} }

// Identity is the name of the rules of a run among the hashes of its checkpoints, which have them if there are any.
const Identity = "normalize"

// None is the name of no rules.
const None = "none"

// Parse reads the names of rules, separated by commas. letters may have a language: letters:fa.
func Parse(text string) (r Rules, err error) {
	if text == "" || text == None {
		return Rules{}, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, of, has := strings.Cut(strings.TrimSpace(part), ":")
		switch at := slices.IndexFunc(named, func(n struct {
			name string
			rule rule
		}) bool {
			return n.name == name
		}); {
		case name == "all":
			r.on = All("").on
		case at < 0:
			return Rules{}, unknown(name)
		default:
			r.on |= named[at].rule
		}
		if !has {
			continue
		}
		if name != "letters" && name != "all" {
			return Rules{}, hint.Errorf("write "+name, "%s takes no language", name)
		}
		if r.language = base(of); r.language == "" {
			return Rules{}, hint.Errorf("for example: letters:fa", "%q is no language", of)
		}
	}
	return r, nil
}

// ruleNames are what Parse takes.
func ruleNames() []string {
	list := []string{"all"}
	for _, n := range named {
		list = append(list, n.name)
	}
	return list
}

func unknown(name string) error {
	advice := hint.DidYouMean(name, ruleNames())
	if advice == "" {
		advice = "name all, none, or some of " + strings.Join(ruleNames()[1:], ", ") + ", separated by commas"
	}
	return hint.Errorf(advice, "there is no rule %q", name)
}

// String writes the rules for Parse. Rules that a later program adds to all are not among them.
func (r Rules) String() string {
	var list []string
	for _, n := range named {
		name := n.name
		if n.rule == letters && r.language != "" {
			name += ":" + r.language
		}
		if r.on&n.rule != 0 {
			list = append(list, name)
		}
	}
	if list == nil {
		return None
	}
	return strings.Join(list, ",")
}

// On reports whether there is a rule.
func (r Rules) On() bool { return r.on != 0 }

// Letters reports whether the language of a text matters, and which one is that of texts without one; "" for none.
func (r Rules) Letters() (language string, on bool) { return r.language, r.on&letters != 0 }

// Lines is Text of each line.
func (r Rules) Lines(text, language string) string {
	if r.on == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = r.Text(line, language)
	}
	return strings.Join(lines, "\n")
}

// Text applies the rules to a text in a language; "" for a text that has none of its own. The result is in NFC, without
// white space at its ends, and the rules do not change it again.
func (r Rules) Text(text, language string) string {
	if r.on == 0 {
		return text
	}
	if ascii(text) && r.on&spaces == 0 {
		return text // the rules are about other characters
	}
	if language = base(language); language == "" {
		language = r.language
	}
	for _, step := range []struct {
		rule  rule
		apply func(string) string
	}{
		{forms, foldForms}, {invisible, func(s string) string {
			if r.on&letters != 0 { // whether a joiner has an effect depends on what letters leaves
				s = norm.NFC.String(strings.ReplaceAll(s, tatweel, ""))
			}
			return removeInvisible(s)
		}},
		{letters, func(s string) string { return foldLetters(s, language) }}, {digits, foldDigits},
		{punctuation, foldPunctuation}, {spaces, foldSpaces},
	} {
		if r.on&step.rule != 0 {
			text = norm.NFC.String(step.apply(text))
		}
	}
	return strings.TrimSpace(text)
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// maxTag bounds the tag of a language in bytes: lists come from anywhere.
const maxTag = 64

// base returns the language of a tag in its shortest code: fa for fa-IR, FA and fas; "" for what is none.
func base(tag string) string {
	if tag == "" || len(tag) > maxTag {
		return ""
	}
	t, err := language.Parse(tag)
	if err != nil {
		return ""
	}
	b, confidence := t.Base()
	if confidence == language.No {
		return ""
	}
	return b.String()
}
