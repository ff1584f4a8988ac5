package manifest

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// printer words schema errors in English whatever the machine's locale: messages are part of the interface.
var printer = message.NewPrinter(language.English)
