// Package texts writes one letter, digit or mark that has several forms in Unicode in one of them, where a run asks for
// it, and finds texts that may be wrong. docs/data-texts.md specifies the rules.
//
//	rules, err := texts.Parse("letters:fa,digits")
//	rules.Text("علي ١٢", "") // "علی 12"
package texts
