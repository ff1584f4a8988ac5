package supervise

import (
	"encoding/json"
	"errors"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// told is an error of a Pool for another process of the host.
type told struct {
	Text   string // of the error, or of PluginError.Err
	Kind   string // what it wraps, of kinds
	Hint   string
	Plugin *PluginError // nil if it is none
	Lost   bool         // PluginError.lost
}

// kinds are the errors that callers distinguish, by names for other processes.
var kinds = map[string]error{
	"lost": ErrLost, "failed": ErrFailed, "crash loop": ErrCrashLoop, "violation": ErrViolation, "closed": ErrClosed,
	"changed": ErrChanged, "unended": errUnended,
}

// kindError has the text of an error and is of one of the kinds.
type kindError struct {
	text string
	kind error
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }

// EncodeError returns an error of a Pool in a form of which DecodeError of another process makes the same: with its
// text, its hint, what it wraps of the errors of this package, and what a *PluginError has. It is nil for nil.
func EncodeError(err error) []byte {
	if err == nil {
		return nil
	}
	t := told{Text: err.Error(), Hint: hint.Of(err)}
	if p, ok := errors.AsType[*PluginError](err); ok {
		t.Text, t.Lost = p.Err.Error(), p.lost
		own := *p
		own.Err = nil // an interface
		t.Plugin = &own
	}
	for name, kind := range kinds {
		if errors.Is(err, kind) && !(t.Lost && kind == ErrLost) {
			t.Kind = name
		}
	}
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and booleans only
	}
	return data
}

// DecodeError returns the error of the bytes of EncodeError.
func DecodeError(data []byte) error {
	if data == nil {
		return nil
	}
	var t told
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	err := error(&kindError{t.Text, kinds[t.Kind]})
	if t.Plugin == nil {
		if t.Hint != "" {
			return hint.Errorf(t.Hint, "%w", err)
		}
		return err
	}
	t.Plugin.Err, t.Plugin.hint, t.Plugin.lost = err, t.Hint, t.Lost
	return t.Plugin
}
