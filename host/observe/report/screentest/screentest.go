// Package screentest gives tests a terminal, and returns the text that is visible on it.
//
//	s := screentest.Open(t, 100, 30)
//	fmt.Fprint(s.TTY, "half a line\rthe whole line\n")
//	if got := s.Close(); got != "the whole line\n" { ... }
package screentest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Screen is a pseudo terminal and everything that was ever on its screen, as if it were endlessly long.
type Screen struct {
	// TTY is the terminal as a program has it.
	TTY *os.File

	t       *testing.T
	columns int
	read    chan struct{} // closed when all is read
	lines   [][]rune
	row     int
	column  int
}

// Open returns a terminal of that size. The test ends it with Close.
func Open(t *testing.T, columns, rows int) *Screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{
		Col: uint16(columns), Row: uint16(rows),
	}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &Screen{TTY: tty, t: t, columns: columns, read: make(chan struct{})}
	go func() {
		defer close(s.read)
		defer master.Close()
		s.show(bufio.NewReader(master))
	}()
	return s
}

// Close ends the terminal and returns the screen: its lines without trailing spaces, each with a line end but the one
// that the cursor is on.
func (s *Screen) Close() string {
	s.t.Helper()
	if err := s.TTY.Close(); err != nil {
		s.t.Error(err)
	}
	<-s.read
	var out strings.Builder
	for i, line := range s.lines {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(strings.TrimRight(string(line), " "))
	}
	return out.String()
}

// show interprets the program's output to the terminal, until the program closes it.
func (s *Screen) show(r io.RuneReader) {
	for {
		c, _, err := r.ReadRune()
		if err != nil { // EIO means that no process has the terminal open
			return
		}
		switch {
		case c == '\r':
			s.column = 0
		case c == '\n':
			s.row++
		case c == '\x1b':
			s.control(r)
		case c < ' ':
			s.t.Errorf("control character %q on the screen", c)
		default:
			s.put(c)
		}
		for len(s.lines) <= s.row {
			s.lines = append(s.lines, nil)
		}
	}
}

func (s *Screen) put(c rune) {
	if s.column == s.columns { // the line is full: it wraps
		s.row, s.column = s.row+1, 0
	}
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	line := s.lines[s.row]
	for len(line) <= s.column {
		line = append(line, ' ')
	}
	line[s.column] = c
	s.lines[s.row] = line
	s.column++
}

// control obeys "cursor up n" and "erase what follows the cursor". Nothing else is expected of a program that
// leaves the terminal as it found it.
func (s *Screen) control(r io.RuneReader) {
	var text strings.Builder
	for {
		c, _, err := r.ReadRune()
		if err != nil {
			return
		}
		text.WriteRune(c)
		if c >= '@' && c != '[' {
			break
		}
	}
	n := 1
	switch sequence := text.String(); {
	case sequence == "[J":
		s.lines = s.lines[:min(len(s.lines), s.row+1)]
		if s.row < len(s.lines) {
			s.lines[s.row] = s.lines[s.row][:min(len(s.lines[s.row]), s.column)]
		}
	case strings.HasSuffix(sequence, "A"):
		if len(sequence) > 2 {
			fmt.Sscanf(sequence, "[%dA", &n)
		}
		s.row = max(0, s.row-n)
	default:
		s.t.Errorf("control sequence %q", sequence)
	}
}
