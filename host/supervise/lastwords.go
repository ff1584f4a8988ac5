package supervise

import (
	"path/filepath"
	"strings"
)

// goPanic finds the cause in the output of a Go program that panicked: the message, and the first frame of the
// program's own code. A dump may have thousands of lines after them.
type goPanic struct {
	lines []string
	part  int // of the dump that comes next
}

// The parts of a dump.
const (
	noPanic   = iota
	message   // lines up to the first goroutine
	function  // of a frame
	ownPlace  // of the frame that is wanted
	otherFile // of a frame of the runtime
	complete
)

// maxMessage bounds the lines of a message.
const maxMessage = 10

func (g *goPanic) line(text string) {
	if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
		g.lines, g.part = []string{text}, message
		return
	}
	switch g.part {
	case message:
		switch {
		case strings.HasPrefix(text, "goroutine "):
			g.part = function
		case text != "" && len(g.lines) < maxMessage:
			g.lines = append(g.lines, text)
		}
	case function:
		switch {
		case text == "":
			g.part = complete // only the runtime's frames
		case strings.HasPrefix(text, "panic("), strings.HasPrefix(text, "runtime."), strings.HasPrefix(text, "runtime/"):
			g.part = otherFile
		default:
			g.lines = append(g.lines, "at "+text)
			g.part = ownPlace
		}
	case otherFile:
		g.part = function
	case ownPlace:
		g.lines = append(g.lines, "   "+strings.TrimSpace(text))
		g.part = complete
	}
}

// text returns the excerpt, or "" if the program has not panicked.
func (g *goPanic) text() string {
	if g.part != complete {
		return ""
	}
	return strings.Join(g.lines, "\n") + "\n"
}

// summary is one line of the last lines: the last one, or the message of a panic with its place.
func summary(lines string) string {
	all := strings.Split(strings.TrimRight(lines, "\n"), "\n")
	last := all[len(all)-1]
	if !strings.HasPrefix(all[0], "panic: ") && !strings.HasPrefix(all[0], "fatal error: ") {
		return last
	}
	place, _, _ := strings.Cut(strings.TrimSpace(last), " ") // without the offset
	return all[0] + " at " + filepath.Base(place)
}
