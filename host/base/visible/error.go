package visible

import "strings"

// Error returns the message of an error as lines, each of which is Text. A line break is one only where the program has
// put it: between joined errors, and in an error with a method Lines() []string. One in foreign text, such as the name
// of a file, is an escape. All lines but the first are indented, so none looks like a message of its own.
func Error(err error) []string {
	lines := errorLines(err)
	for i, line := range lines {
		if i > 0 && !strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		}
	}
	return lines
}

// WithLines returns an error whose message ends with a colon, and has further lines.
func WithLines(err error, lines ...string) error { return &withLines{err, lines} }

type withLines struct {
	error
	more []string
}

func (w *withLines) Error() string {
	return strings.Join(append([]string{w.error.Error() + ":"}, w.more...), "\n")
}
func (w *withLines) Unwrap() error { return w.error }

func errorLines(err error) []string {
	if w, ok := err.(*withLines); ok {
		lines := errorLines(w.error)
		lines[len(lines)-1] += ":"
		for _, line := range w.more {
			lines = append(lines, Text(line))
		}
		return lines
	}
	if several, ok := err.(interface{ Lines() []string }); ok {
		var lines []string
		for _, line := range several.Lines() {
			lines = append(lines, Text(line))
		}
		return lines
	}
	var inner []error
	switch wrapped := err.(type) {
	case interface{ Unwrap() []error }:
		inner = wrapped.Unwrap()
		if lines, ok := joined(err, inner); ok {
			return lines
		}
	case interface{ Unwrap() error }:
		if e := wrapped.Unwrap(); e != nil {
			inner = []error{e}
		}
	}
	return around(err.Error(), inner)
}

// joined returns the lines of errors.Join.
func joined(err error, inner []error) (lines []string, ok bool) {
	texts := make([]string, len(inner))
	for i, e := range inner {
		texts[i] = e.Error()
		lines = append(lines, errorLines(e)...)
	}
	return lines, err.Error() == strings.Join(texts, "\n")
}

// around returns the lines of a message in which the messages of other errors stand in this order: those keep their
// lines.
func around(text string, inner []error) []string {
	lines := []string{""}
	add := func(more []string) {
		lines[len(lines)-1] += more[0]
		lines = append(lines, more[1:]...)
	}
	for i, e := range inner {
		message := e.Error()
		at := strings.Index(text, message)
		if i == len(inner)-1 {
			at = strings.LastIndex(text, message) // foreign text before it may be equal
		}
		if at < 0 || message == "" {
			continue // it is not a part of the message
		}
		add([]string{Text(text[:at])})
		add(errorLines(e))
		text = text[at+len(message):]
	}
	add([]string{Text(text)})
	return lines
}
