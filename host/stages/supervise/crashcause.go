package supervise

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// crashCause finds the cause in the output of a program that crashes. Of a Go program that is the message and the first
// frame of the program's own code: a dump may have thousands of lines after them, and ends with registers. Of other
// programs it is one line, which may be far above the last ones.
type crashCause struct {
	lines []string // of the dump of a Go program
	part  int      // of it that comes next
	fatal string   // the cause, if no program of any language goes on after such a line
	first string   // its first line
	cause string   // the last line that looks like one
	begun bool     // in a traceback of Python
	js    string   // the last error of JavaScript, whose frames follow it
	// The message of fatal may follow, in C++ and in Rust. It is added once: a plugin may write any number of such
	// lines.
	named, panicked bool
}

// The parts of a dump.
const (
	noDump    = iota
	message   // lines up to the first goroutine
	stack     // the runtime's own, which says nothing
	function  // of a frame
	ownPlace  // of the frame that is wanted
	otherFile // of a frame of the runtime
	complete
)

// Bounds, whatever a program writes: of the lines of a message, and of the bytes that are kept of each.
const (
	maxMessage = 10
	maxWords   = 4 << 10
)

// goDump begins the dump of a Go program: it panicked, its runtime gave up, or a signal ended it.
var goDump = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: )`)

func (w *crashCause) line(text string) {
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "")
	}
	w.other(text)
	if goDump.MatchString(text) && w.part != message { // a second message belongs to the first
		w.lines, w.part = []string{text}, message
		return
	}
	switch w.part {
	case message, stack:
		switch {
		case strings.HasPrefix(text, "goroutine "):
			w.part = function
		case text == "runtime stack:":
			w.part = stack
		case w.part == message && text != "" && len(w.lines) < maxMessage:
			w.lines = append(w.lines, text)
		}
	case function:
		switch {
		case !strings.Contains(text, "("), strings.HasPrefix(text, "goroutine "):
			w.part = complete // only the runtime's frames: another goroutine, or registers
		case strings.HasPrefix(text, "panic("), strings.HasPrefix(text, "runtime."),
			strings.HasPrefix(text, "runtime/"):
			w.part = otherFile
		default:
			w.lines = append(w.lines, "at "+text)
			w.part = ownPlace
		}
	case otherFile:
		w.part = function
	case ownPlace:
		w.lines = append(w.lines, place+strings.TrimSpace(text))
		w.part = complete
	}
}

// place begins the line with the file of a frame.
const place = "   "

// ends are the beginnings of lines after which a program ends: of Python's interpreter, C++, the C library, Java, .NET
// and OpenMP of Intel.
var ends = []string{
	"Fatal Python error: ", "terminate called ", "libc++abi: ", "*** stack smashing", "*** buffer overflow", "free(): ",
	"malloc(): ", "realloc(): ", "munmap_chunk(): ", "double free or corruption", "corrupted ", "Exception in thread ",
	"Unhandled exception", "OMP: Error #",
}

// within are parts of such lines: an assertion of C, a sanitizer, Rust.
var within = []string{
	": Assertion `", "ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "WARNING: ThreadSanitizer", "' panicked at ",
}

const traceback = "Traceback (most recent call last):"

// jsError begins with the class of an error, and nodeEnd is what Node.js writes when one has ended it.
var (
	jsError = regexp.MustCompile(`^(Uncaught )?[A-Za-z]*Error( \[[A-Z0-9_]+\])?: `)
	nodeEnd = regexp.MustCompile(`^Node\.js v\d`)
)

// other looks for the cause of a program that is not written in Go.
func (w *crashCause) other(text string) {
	indented := strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t")
	switch {
	case text == traceback:
		w.begun, w.panicked = true, false
	case slices.ContainsFunc(ends, func(p string) bool { return strings.HasPrefix(text, p) }),
		slices.ContainsFunc(within, func(p string) bool { return strings.Contains(text, p) }):
		w.cause, w.fatal, w.first = text, text, text
		w.begun, w.named = false, strings.HasPrefix(text, "terminate called ")
		// the message is the next line
		w.panicked = strings.Contains(text, "' panicked at ") && strings.HasSuffix(text, ":")
	case strings.HasPrefix(strings.TrimSpace(text), "what(): ") && w.named: // of the exception that C++ has named
		w.named = false
		w.fatal += ": " + strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "what(): "))
		w.cause = w.fatal
	case w.panicked && !indented && text != "":
		w.panicked = false
		w.fatal += " " + text
		w.cause = w.fatal
	case w.begun && !indented && text != "":
		w.begun, w.cause = false, text
	case jsError.MatchString(text):
		w.js = text
	case w.js != "" && nodeEnd.MatchString(text):
		w.cause, w.fatal, w.first, w.js = w.js, w.js, w.js, ""
	}
}

// dump returns the excerpt of a Go program's dump, or "".
func (w *crashCause) dump() string {
	if w.part != complete {
		return ""
	}
	return strings.Join(w.lines, "\n") + "\n"
}

// summary is the line of the last lines that says most: the message of a crash, with its place if it is known, or the
// last line.
func summary(lines string) string {
	all := strings.Split(strings.TrimRight(lines, "\n"), "\n")
	if goDump.MatchString(all[0]) {
		for _, l := range all[1:] {
			if file, ok := strings.CutPrefix(l, place); ok {
				file, _, _ = strings.Cut(file, " ") // without the offset
				return all[0] + " at " + filepath.Base(file)
			}
		}
		return all[0]
	}
	var w crashCause
	for _, l := range all {
		w.line(l)
	}
	if w.cause != "" {
		return w.cause
	}
	return all[len(all)-1]
}
