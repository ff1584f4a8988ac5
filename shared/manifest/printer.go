package manifest

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// printer formats schema errors in English regardless of the machine's locale.
var printer = message.NewPrinter(language.English)
