package texts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lookalikes are letters of Latin, Cyrillic and Greek that look like one of another of the three (Unicode Technical
// Standard 39, confusables.txt), by script.
var lookalikes = []struct {
	script  *unicode.RangeTable
	letters string
}{
	{unicode.Latin, "acdehijklmnopqrsuvwxyABCEFHIJKMNOPSTUVXYZ"},
	{unicode.Cyrillic, "асԁеһіјклмпорԛгѕцѵԝхуАВСЕНІЈКМОРЅТХУѴԌԚԜЗ"},
	{unicode.Greek, "αγιικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳ"},
}

// leastWord is the least length of a word that is looked at: ΔT and kΩ are meant.
const leastWord = 3

// Disguised reports whether a word has letters of two scripts of which all of one look like letters of the other: a
// Latin a in a Cyrillic word. Such a word is seen as one and has the tokens of none.
func Disguised(word string) bool {
	scripts, alike := 0, false
	if utf8.RuneCountInString(word) < leastWord {
		return false
	}
	for _, l := range lookalikes {
		n, same := 0, 0
		for _, r := range word {
			if unicode.Is(l.script, r) && unicode.IsLetter(r) {
				n++
				if strings.ContainsRune(l.letters, r) {
					same++
				}
			}
		}
		if n > 0 {
			scripts++
			alike = alike || n == same
		}
	}
	return scripts > 1 && alike
}

// Words returns the words of a text: letters and marks, and joiners between them.
func Words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != nonJoiner && r != joiner
	})
}

// Joined returns a word without non-joiners.
func Joined(word string) string { return strings.ReplaceAll(word, string(nonJoiner), "") }
