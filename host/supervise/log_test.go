package supervise

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func testJournal() (*journal, *bytes.Buffer) {
	var b bytes.Buffer
	opts := &slog.HandlerOptions{Level: trace, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	return newJournal(slog.New(slog.NewTextHandler(&b, opts))), &b
}

func TestJournal(t *testing.T) {
	tests := []struct{ name, in, log, last string }{
		{"text", "hello\n", "level=INFO msg=hello\n", "hello\n"},
		{"no line feed", "hello", "level=INFO msg=hello\n", "hello\n"},
		{"empty lines", "\n\na\n\n", "level=INFO msg=a\n", "a\n"},
		{"carriage return", "hello\r\n", "level=INFO msg=hello\n", "hello\n"},
		{"not UTF-8", "a\xffb\n", "level=INFO msg=\"a\uFFFDb\"\n", "a\uFFFDb\n"},
		{"hclog", `{"@level":"error","@message":"no","@timestamp":"2026-01-02T03:04:05.000000Z","b":[1,2],"a":"x"}` + "\n",
			"level=ERROR msg=no a=x b=\"[1 2]\"\n", "error: no a=x b=[1 2]\n"},
		{"hclog trace", `{"@level":"trace","@message":"deep"}` + "\n", "level=DEBUG-4 msg=deep\n", "trace: deep\n"},
		{"a number for a message", `{"@level":"error","@message":5}` + "\n",
			`level=INFO msg="{\"@level\":\"error\",\"@message\":5}"` + "\n", `{"@level":"error","@message":5}` + "\n"},
		{"unknown level", `{"@level":"loud","@message":"a"}` + "\n",
			`level=INFO msg="{\"@level\":\"loud\",\"@message\":\"a\"}"` + "\n", `{"@level":"loud","@message":"a"}` + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, step := range []int{1, 3, 1000} { // the result must not depend on how the stream is cut
				j, log := testJournal()
				w := j.writer()
				for b := []byte(tt.in); len(b) > 0; b = b[min(step, len(b)):] {
					w.Write(b[:min(step, len(b))])
				}
				w.flush()
				if log.String() != tt.log || j.last() != tt.last {
					t.Errorf("in steps of %d:\nlog  %q\nwant %q\nlast %q\nwant %q", step, log, tt.log, j.last(), tt.last)
				}
			}
		})
	}
}

func TestJournalKeepsTheLastLines(t *testing.T) {
	j, log := testJournal()
	w := j.writer()
	w.Write([]byte(strings.Repeat("0123456789\n", 10_000) + "the end\n"))
	last := j.last()
	if len(last) > tailSize || len(last) < tailSize-20 || !strings.HasPrefix(last, "0123456789\n") || !strings.HasSuffix(last, "the end\n") {
		t.Errorf("%d bytes: %q...", len(last), last[:20])
	}
	if n := strings.Count(log.String(), "\n"); n > 2*logRate+1 {
		t.Errorf("%d lines were logged at once", n)
	}
	w.Write(bytes.Repeat([]byte("y"), 3*maxLine))
	w.flush()
	if last := j.last(); len(last) > tailSize || strings.Trim(last, "y\n") != "" {
		t.Errorf("after a long line: %d bytes, %q...", len(last), last[:20])
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add(`{"@level":"warn","@message":"a","k":1}`)
	f.Add(`{"@level":"info","@message":5}`)
	f.Add(`{"@level":{},"@message":"a"}`)
	f.Add(`{`)
	f.Add("text")
	f.Fuzz(func(t *testing.T, text string) {
		level, message, attrs := parseLine(text)
		if level < trace || level > slog.LevelError {
			t.Errorf("level %v", level)
		}
		if message != text && !strings.HasPrefix(text, "{") {
			t.Errorf("%q was logged as %q", text, message)
		}
		for _, a := range attrs {
			if strings.HasPrefix(a.Key, "@") {
				t.Errorf("field %s", a.Key)
			}
		}
	})
}
