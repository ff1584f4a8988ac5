package texts

import "strings"

// alike lists letters that keyboards and fonts of Arabic script confuse, and that Unicode distinguishes: yeh, kaf and
// heh (The Unicode Standard, chapter 9.2, "Arabic"), and the digits.
var alike = []string{
	"\u06CC\u064A\u0649", "\u06A9\u0643\u06AA", "\u0647\u06C1\u06BE\u06D5",
	"0\u06F0\u0660", "1\u06F1\u0661", "2\u06F2\u0662", "3\u06F3\u0663", "4\u06F4\u0664",
	"5\u06F5\u0665", "6\u06F6\u0666", "7\u06F7\u0667", "8\u06F8\u0668", "9\u06F9\u0669",
}

// Alike returns the characters that a character is confused with, itself included; "" for others.
func Alike(r rune) string {
	for _, group := range alike {
		if strings.ContainsRune(group, r) {
			return group
		}
	}
	return ""
}

// tatweel lengthens a word on paper and is no letter.
const tatweel = "\u0640"

// written are the letters that a language does not have, with those that it writes in their place. Which ones it has is
// said by the main exemplar characters of CLDR (common/main/fa.xml, ar.xml, ur.xml, ckb.xml, ps.xml, ro.xml). Letters
// of which a language has both, such as the two yehs of Arabic and those of Pashto, and the two hehs of Urdu and
// Sorani, stay.
var written = map[string]*strings.Replacer{
	"fa": strings.NewReplacer(tatweel, "",
		"\u064A", "\u06CC", "\u0649", "\u06CC", "\u0643", "\u06A9", "\u06AA", "\u06A9",
		"\u06C1", "\u0647", "\u06BE", "\u0647", "\u06D5", "\u0647", "\u06C0", "\u0647\u0654", "\u06C2", "\u0647\u0654",
		"\u06C3", "\u0629"),
	"ar": strings.NewReplacer(tatweel, "",
		"\u06A9", "\u0643", "\u06AA", "\u0643", "\u06C1", "\u0647", "\u06BE", "\u0647", "\u06D5", "\u0647", "\u06C3",
		"\u0629"),
	"ur": strings.NewReplacer(tatweel, "",
		"\u064A", "\u06CC", "\u0649", "\u06CC", "\u0643", "\u06A9", "\u06AA", "\u06A9", "\u0647", "\u06C1", "\u06C0",
		"\u06C2", "\u06D5", "\u06C1"),
	"ckb": strings.NewReplacer(tatweel, "", "\u064A", "\u06CC", "\u0649", "\u06CC", "\u0643", "\u06A9", "\u06AA",
		"\u06A9"),
	"ps": strings.NewReplacer(tatweel, "", "\u0643", "\u06A9", "\u06AA", "\u06A9", "\u06C1", "\u0647", "\u06BE",
		"\u0647", "\u06D5", "\u0647"),
	"ro": strings.NewReplacer(tatweel, "", "\u015E", "\u0218", "\u015F", "\u0219", "\u0162", "\u021A", "\u0163",
		"\u021B"),
	"": strings.NewReplacer(tatweel, ""),
}

// Written reports whether the rule letters knows the letters of a language.
func Written(language string) bool {
	language = base(language)
	return language != "" && written[language] != nil
}

// foldLetters writes letters as the language does. Persian yeh before another letter has two dots, as that of Arabic;
// at the end of a word it has none, and an Arabic text may mean either yeh by it.
func foldLetters(text, language string) string {
	to := written[language]
	if to == nil {
		to = written[""]
	}
	text = to.Replace(text)
	if language != "ar" || !strings.ContainsRune(text, '\u06CC') {
		return text
	}
	runes := []rune(text)
	for i, r := range runes {
		if r == '\u06CC' && joins(runes, i+1) {
			runes[i] = '\u064A'
		}
	}
	return string(runes)
}
