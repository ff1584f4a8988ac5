package report

import (
	"encoding/json"
	"io"
)

// JSON writes what a command reports, for programs.
func JSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false) // it is read by people as well
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
