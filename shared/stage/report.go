package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Source is the part of a clip that a row is.
type Source struct {
	Clip       string // its id, as the data set's list names it
	Start, End int64  // the first sample and the one after the last, at the rate of Config.Features
}

// Source returns the part of a clip that a row was made from, before stages changed it: the whole clip that the model
// learns, or the part of another clip if the stage reads what was made from the reference waveform. It is false for an
// empty row, for a stage that reads tensors of both, and from a host that has only protocol 1. Draw random numbers from
// Rand, not from the source.
func (b *Batch) Source(row int) (Source, bool) {
	if row >= len(b.call.Sources) || b.call.Sources[row].GetClip() == "" {
		return Source{}, false
	}
	s := b.call.Sources[row]
	return Source{Clip: s.Clip, Start: s.Start, End: s.End}, true
}

// Report tells the host what was drawn for a row, for people who look at what the stage does: b.Report(row, "gain_db",
// db). It does nothing unless the host asks for it, and must not change what the stage does. value is anything that
// encoding/json takes. NaN and infinities become strings, in slices and maps, too. Of two values of one name, the
// later counts. A value that is not JSON, and more than MaxReport bytes for a row, fail the call. It panics if the row
// does not exist.
func (b *Batch) Report(row int, name string, value any) {
	if b.call.Report {
		b.report(row, name, value)
	}
}

func (b *Batch) report(row int, name string, value any) {
	if row < 0 || row >= b.Rows() {
		panic(fmt.Sprintf("draws of row %d of a batch of %d rows were reported", row, b.Rows()))
	}
	text, err := marshal(value)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.unreported = fmt.Errorf("report %q of row %d: %w", name, row, err)
		return
	}
	if b.reported == nil {
		b.reported = map[int]map[string]json.RawMessage{}
	}
	if b.reported[row] == nil {
		b.reported[row] = map[string]json.RawMessage{}
	}
	b.reported[row][name] = text
}

// draws returns what was reported, in the order of the rows.
func (b *Batch) draws() (draws []*stagepb.Draws, err error) {
	if b.reported == nil || b.unreported != nil {
		return nil, b.unreported
	}
	for _, row := range slices.Sorted(maps.Keys(b.reported)) {
		text, err := json.Marshal(b.reported[row]) // in the order of the names
		if err != nil {
			return nil, fmt.Errorf("report of row %d: %w", row, err)
		}
		if len(text) > MaxReport {
			return nil, fmt.Errorf("the report of row %d has %d bytes, more than %d", row, len(text), MaxReport)
		}
		draws = append(draws, &stagepb.Draws{Row: uint32(row), Json: strings.ToValidUTF8(string(text), "\ufffd")})
	}
	return draws, nil
}

// marshal returns a value as JSON, with strings for the numbers that JSON lacks.
func marshal(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		return json.Marshal(finite(reflect.ValueOf(value), 0))
	}
	return text, err
}

// deepest is how deep finite looks: what is deeper may refer to itself, which encoding/json refuses.
const deepest = 100

// finite replaces NaN and infinities by their names, in slices, arrays and maps, too.
func finite(v reflect.Value, depth int) any {
	if depth++; depth > deepest {
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		switch f := v.Float(); {
		case math.IsNaN(f):
			return "NaN"
		case math.IsInf(f, 1):
			return "Infinity"
		case math.IsInf(f, -1):
			return "-Infinity"
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return finite(v.Elem(), depth)
		}
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = finite(v.Index(i), depth)
		}
		return list
	case reflect.Map:
		out := map[string]any{}
		for _, key := range v.MapKeys() {
			out[fmt.Sprint(key)] = finite(v.MapIndex(key), depth)
		}
		return out
	}
	return v.Interface()
}
