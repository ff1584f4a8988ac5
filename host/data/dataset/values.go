package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/array"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// values converts the values of a line's columns. dir is the list's folder. The error names the column.
func (c *Columns) values(dir string, line *object) ([]Value, error) {
	out := make([]Value, len(line.own))
	for i, v := range line.own {
		if v == nil {
			return nil, line.missing(c.all[i].spec.Column)
		}
		var err error
		switch col := &c.all[i]; {
		case col.spec.Origin == manifest.OriginFile:
			out[i].data, err = reference(dir, v)
		default:
			out[i], err = col.convert(v)
		}
		if err != nil {
			return nil, fmt.Errorf("%s%w", c.all[i].spec.Column, err)
		}
	}
	return out, nil
}

// reference returns the path and the tensor that a line names, with the path as insideOf has it.
func reference(dir string, v json.RawMessage) (string, error) {
	text, err := unquote(v)
	switch {
	case v[0] != '"' || err != nil:
		return "", fmt.Errorf(" is %s, not the name of a file", kind(v))
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Errorf(" %s has a control character", brief(strconv.Quote(text)))
	}
	path, tensor, err := array.Split(text)
	if err != nil {
		return "", fmt.Errorf(" %q: %w", brief(text), err)
	}
	if path = insideOf(dir, path); tensor != "" {
		path += "#" + tensor
	}
	return path, nil
}

// convert converts a value in the list itself. Of a sequence, each step of axis 1 has the shape inner.
func (c *column) convert(v json.RawMessage) (Value, error) {
	packed := make([]byte, 0, len(v)/2) // most values take a byte, and one between them
	if c.spec.Lengths == "" {
		err := c.nested(&packed, v, c.inner)
		return Value{data: string(packed)}, err
	}
	n, err := 0, error(nil)
	if c.spec.Split != "" && v[0] == '"' {
		n, err = c.split(&packed, v)
	} else {
		n, err = c.sequence(&packed, v, c.inner)
	}
	if err == nil && n == 0 {
		err = errors.New(" is empty")
	}
	return Value{n, string(packed)}, err
}

// split converts a string of symbols.
func (c *column) split(to *[]byte, v json.RawMessage) (int, error) {
	text, err := unquote(v)
	if err != nil {
		return 0, err
	}
	n := 0
	for symbol := range c.vocabulary.symbols(text) {
		id, err := c.vocabulary.id(symbol)
		if err != nil {
			return 0, fmt.Errorf("[%d]%w", n, err)
		}
		*to = binary.AppendVarint(*to, int64(id))
		n++
	}
	return n, nil
}

// nested converts nested lists of a shape. An error begins with the place.
func (c *column) nested(to *[]byte, v json.RawMessage, shape []int) error {
	if len(shape) == 0 {
		return c.element(to, v)
	}
	n, err := c.sequence(to, v, shape[1:])
	if err == nil && n != shape[0] {
		return fmt.Errorf(" has the length %d, but the input takes %d", n, shape[0])
	}
	return err
}

// sequence converts a list of any length, whose elements have a shape.
func (c *column) sequence(to *[]byte, v json.RawMessage, shape []int) (n int, err error) {
	if v[0] != '[' {
		return 0, fmt.Errorf(" is %s, not a list", kind(v))
	}
	for rest := bytes.TrimLeft(v[1:], spaces); rest[0] != ']'; n++ {
		var element json.RawMessage
		element, rest = cutValue(rest)
		if err := c.nested(to, element, shape); err != nil {
			return 0, fmt.Errorf("[%d]%w", n, err)
		}
		rest = bytes.TrimLeft(rest, spaces+",")
	}
	return n, nil
}

// element appends one value, packed: integers as varints, because most are small, others as in the tensor.
func (c *column) element(to *[]byte, v json.RawMessage) error {
	text := string(v)
	switch {
	case c.vocabulary != nil:
		if v[0] != '"' {
			return fmt.Errorf(" is %s, not a symbol of %s", kind(v), c.vocabulary.file)
		}
		symbol, err := unquote(v)
		if err != nil {
			return err
		}
		id, err := c.vocabulary.id(symbol)
		*to = binary.AppendVarint(*to, int64(id))
		return err
	case c.spec.DType == manifest.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf(" is %s, not true or false", kind(v))
		}
		*to = append(*to, byte(len("false")-len(text)))
	case v[0] != '-' && (v[0] < '0' || v[0] > '9'):
		return fmt.Errorf(" is %s, not a number", kind(v))
	case c.spec.DType == manifest.F32:
		x, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return fmt.Errorf(" is %s, beyond f32", brief(text))
		}
		*to = binary.LittleEndian.AppendUint32(*to, math.Float32bits(float32(x)))
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf(" is %s, beyond i32", brief(text))
		case err != nil:
			return fmt.Errorf(" is %s, not an integer", brief(text))
		}
		if err := c.inRange(n); err != nil {
			return err
		}
		*to = binary.AppendVarint(*to, n)
	}
	return nil
}

// inRange checks an integer.
func (c *column) inRange(n int64) error {
	least, most := int64(math.MinInt32), int64(math.MaxInt32)
	if c.spec.DType == manifest.U8 {
		least, most = 0, math.MaxUint8
	}
	if c.spec.Below > 0 {
		least, most = 0, min(most, int64(c.spec.Below)-1)
	}
	if n < least || n > most {
		return fmt.Errorf(" is %d, but the input takes %d to %d", n, least, most)
	}
	return nil
}

// checkArray checks the integers of an array, as inRange does.
func (c *column) checkArray(data []byte) error {
	if c.spec.Below == 0 {
		return nil // the type's range is that of the data
	}
	size := c.spec.DType.Size()
	for i := 0; i < len(data); i += size {
		n := int64(data[i])
		if size == 4 {
			n = int64(int32(binary.LittleEndian.Uint32(data[i:])))
		}
		if err := c.inRange(n); err != nil {
			return fmt.Errorf("value %d%w", i/size, err)
		}
	}
	return nil
}

// unpack writes a packed value to a tensor's row and returns the rest of the row.
func (c *column) unpack(row []byte, packed string) []byte {
	if c.spec.DType != manifest.I32 && c.spec.DType != manifest.U8 {
		return row[copy(row, packed):]
	}
	for b := []byte(packed); len(b) > 0; {
		v, n := binary.Varint(b)
		b = b[n:]
		if c.spec.DType == manifest.U8 {
			row[0] = byte(v)
			row = row[1:]
			continue
		}
		binary.LittleEndian.PutUint32(row, uint32(int32(v)))
		row = row[4:]
	}
	return row
}
