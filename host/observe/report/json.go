package report

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// JSON writes a value as indented JSON, for programs and for people: it can be shown on a terminal.
func JSON(out io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // users read it too
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(visible.JSON(text.Bytes()))
	return err
}
