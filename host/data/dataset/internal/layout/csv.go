package layout

import (
	"bufio"
	"strings"
)

// fields splits a line. With quotes, a field that begins with a quote ends at the next single one (RFC 4180); strict is
// false if anything else follows it, or if it does not end. A quote within another field means itself, as to Python's
// csv.
func fields(line string, sep byte, quotes bool) (list []string, strict bool) {
	if !quotes || strings.IndexByte(line, '"') < 0 {
		return strings.Split(line, string(sep)), true
	}
	for {
		if strings.HasPrefix(line, `"`) {
			value, rest, ok := quoted(line[1:], sep)
			list = append(list, value)
			if !ok || rest == "" {
				return list, ok
			}
			line = rest[1:]
			continue
		}
		at := strings.IndexByte(line, sep)
		if at < 0 {
			return append(list, line), true
		}
		list, line = append(list, line[:at]), line[at+1:]
	}
}

// quoted reads a field after its first quote. rest begins with the separator, or is empty at the end of the line.
func quoted(text string, sep byte) (value, rest string, ok bool) {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '"')
		if at < 0 {
			return b.String() + text, "", false
		}
		b.WriteString(text[:at])
		text = text[at+1:]
		switch {
		case text == "" || text[0] == sep:
			return b.String(), text, true
		case text[0] != '"':
			return b.String(), text, false
		}
		b.WriteByte('"')
		text = text[1:]
	}
}

// quoting counts how fields with quotes are written. A writer of CSV quotes what needs it, or a whole column; the
// quotes of a text are anywhere.
type quoting struct {
	needed  int   // quoted fields with a quote, a separator or a line end in them
	wrapped []int // quoted fields without, by column
	quoted  []int // all quoted fields, by column
	against int   // lines that do not follow the rules of CSV, or unquoted fields with a quote
	first   int   // line of the first quoted field
}

// look counts the fields of a line that has a quote.
func (q *quoting) look(line string, sep byte, number int) {
	for j := 0; ; j++ {
		if j == len(q.quoted) {
			q.quoted, q.wrapped = append(q.quoted, 0), append(q.wrapped, 0)
		}
		if !strings.HasPrefix(line, `"`) {
			at := strings.IndexByte(line, sep)
			if at < 0 {
				at = len(line)
			}
			if strings.IndexByte(line[:at], '"') >= 0 {
				q.against++
			}
			if at == len(line) {
				return
			}
			line = line[at+1:]
			continue
		}
		value, rest, ok := quoted(line[1:], sep)
		if !ok {
			q.against++
			return
		}
		if q.first == 0 {
			q.first = number
		}
		q.quoted[j]++
		if strings.ContainsAny(value, "\"\r\n"+string(sep)) {
			q.needed++
		} else {
			q.wrapped[j]++
		}
		if rest == "" {
			return
		}
		line = rest[1:]
	}
}

// decide says whether the list is written as CSV. lines are those with each column. It is Open if both is possible: a
// column is in quotes on every line, or some fields are CSV and others are not.
func (q *quoting) decide(lines func(column int) int) Choice {
	whole, some, all := 0, 0, true // columns that are quoted on each line, on some needlessly
	for j := range q.quoted {
		switch n := lines(j); {
		case n > 1 && q.quoted[j] == n:
			whole++
		case q.wrapped[j] > 0:
			some++
			all = false
		default:
			all = false
		}
	}
	switch {
	case len(q.quoted) == 0 || q.needed == 0 && whole == 0:
		return No
	case q.against > 0:
		if q.needed == 0 {
			return No
		}
		return Open
	case all, q.needed > 0 && some == 0:
		return Yes
	}
	return Open
}

// records splits a list into records: at line ends that are not within a quoted field.
type records struct {
	sep byte
	cr  bool // a carriage return alone ends a record, too
	csv bool
}

// split is a bufio.SplitFunc. Its tokens have their line end.
func (r records) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	in, start := false, true // within a quoted field; at the start of a field
	for i, c := range data {
		switch {
		case in:
			in = c != '"' // a doubled one begins the field again
			start = !in
		case r.csv && c == '"' && start:
			in, start = true, false
		case c == '\n', r.cr && c == '\r' && (i+1 < len(data) || atEOF) && !(i+1 < len(data) && data[i+1] == '\n'):
			return i + 1, data[:i+1], nil
		default:
			start = c == r.sep
		}
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// Split returns what divides a list of this layout into lines.
func (l *Layout) Split() bufio.SplitFunc {
	if l.Kind == Table && l.Quotes == Yes || l.CR {
		return records{l.Separator, l.CR, l.Kind == Table && l.Quotes == Yes}.split
	}
	return bufio.ScanLines
}
