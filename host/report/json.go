package report

import (
	"encoding/json"
	"io"
)

// JSON writes the output of a command with --json.
func JSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false) // users read it too
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
