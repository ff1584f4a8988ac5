package supervise

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

func testJournal() (*journal, *bytes.Buffer) {
	var b bytes.Buffer
	opts := &slog.HandlerOptions{Level: trace, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	log := slog.New(slog.NewTextHandler(&b, opts))
	return newJournal(log, log, "fake"), &b
}

func TestJournal(t *testing.T) {
	tests := []struct{ name, in, log, last string }{
		{"text", "hello\n", "level=INFO msg=hello\n", "hello\n"},
		{"no line feed", "hello", "level=INFO msg=hello\n", "hello\n"},
		{"empty lines", "\n\na\n\n", "level=INFO msg=a\n", "a\n"},
		{"carriage return", "hello\r\n", "level=INFO msg=hello\n", "hello\n"},
		{"not UTF-8", "a\xffb\n", "level=INFO msg=\"a\uFFFDb\"\n", "a\uFFFDb\n"},
		{"hclog",
			`{"@level":"error","@message":"no","@timestamp":"2026-01-02T03:04:05.000000Z","b":[1,2],"a":"x"}` + "\n",
			"level=ERROR msg=\"plugin fake: no\" a=x b=\"[1 2]\"\n", "error: no a=x b=[1 2]\n"},
		{"controls", "\x1b[2J\u009b1m\u202eerror: x\n", `level=INFO msg="\\x1b[2J\\u009b1m\\u202eerror: x"` + "\n",
			`\x1b[2J\u009b1m\u202eerror: x` + "\n"},
		{"controls in hclog", `{"@level":"warn","@message":"a\nerror: b","\u001bk":"\u001b[1m"}` + "\n",
			`level=WARN msg="plugin fake: a\\nerror: b" \x1bk=\x1b[1m` + "\n",
			`warn: a\nerror: b \x1bk=\x1b[1m` + "\n"},
		{"a long field", `{"@level":"info","@message":"a","k":"` + strings.Repeat("x", 300) + `"}` + "\n",
			"level=INFO msg=a k=" + strings.Repeat("x", 300) + "\n",
			"info: a " + visible.Short("k="+strings.Repeat("x", 300), maxShown) + "\n"},
		{"hclog trace", `{"@level":"trace","@message":"deep"}` + "\n", "level=DEBUG-4 msg=deep\n", "trace: deep\n"},
		{"a number for a message", `{"@level":"error","@message":5}` + "\n",
			`level=INFO msg="{\"@level\":\"error\",\"@message\":5}"` + "\n", `{"@level":"error","@message":5}` + "\n"},
		{"unknown level", `{"@level":"loud","@message":"a"}` + "\n",
			`level=INFO msg="{\"@level\":\"loud\",\"@message\":\"a\"}"` + "\n",
			`{"@level":"loud","@message":"a"}` + "\n"},
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
					t.Errorf("in steps of %d:\nlog  %q\nwant %q\nlast %q\nwant %q", step, log, tt.log, j.last(),
						tt.last)
				}
			}
		})
	}
}

func TestJournalKeepsTheLastLines(t *testing.T) { synctest.Test(t, keepsTheLastLines) } // all within a second

func keepsTheLastLines(t *testing.T) {
	j, log := testJournal()
	w := j.writer()
	w.Write([]byte(strings.Repeat("0123456789\n", 10_000) + "the end\n"))
	last := j.last()
	if len(last) > tailSize || len(last) < tailSize-20 || !strings.HasPrefix(last, "0123456789\n") ||
		!strings.HasSuffix(last, "the end\n") {
		t.Errorf("%d bytes: %q...", len(last), last[:20])
	}
	if n := strings.Count(log.String(), "\n"); n > logRate+1 {
		t.Errorf("%d lines were logged at once", n)
	}
	w.Write(bytes.Repeat([]byte("y"), 3*maxLine))
	w.flush()
	if last := j.last(); len(last) > tailSize || strings.Trim(last, "y\n") != "" {
		t.Errorf("after a long line: %d bytes, %q...", len(last), last[:20])
	}
}

// TestDropsAreReported: also if no line comes after those that were dropped.
func TestDropsAreReported(t *testing.T) {
	j, log := testJournal()
	for range logRate + 5 {
		j.line([]byte("x"))
	}
	j.close()
	j.close()
	const want = `level=WARN msg="plugin fake: log lines dropped: it wrote more than 200 lines or 128 KiB within a second" lines=5`
	if strings.Count(log.String(), "dropped") != 1 || !strings.Contains(log.String(), want) {
		t.Errorf("%s\nwant once: %s", log, want)
	}
}

// TestGoPanic: of a dump, the message and the program's own frame are kept, however long the dump is.
func TestGoPanic(t *testing.T) {
	const dump = `panic: runtime error: index out of range [7] with length 7
	panic: again

goroutine 34 [running]:
panic({0x1, 0x2})
	/usr/local/go/src/runtime/panic.go:783 +0x132
main.(*mix).Process.func1(...)
	/src/loud/mix.go:88 +0x1d
main.main()
	/src/loud/main.go:10 +0x2

goroutine 1 [select]:
`
	j, _ := testJournal()
	w := j.writer()
	w.Write([]byte("before\n" + dump + strings.Repeat("more\n", 10_000)))
	const want = "panic: runtime error: index out of range [7] with length 7\n\tpanic: again\n" +
		"at main.(*mix).Process.func1(...)\n   /src/loud/mix.go:88 +0x1d\n"
	if got := j.last(); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := summary(j.last()); got != "panic: runtime error: index out of range [7] with length 7 at mix.go:88" {
		t.Error(got)
	}
}

// TestLastWords: the line that says why a program of any language ended is shown, however much it writes after it.
func TestLastWords(t *testing.T) {
	registers := "\nrax    0x0\nrbx    0x1\ngs     0x0\n"
	for _, tt := range []struct{ name, in, want string }{
		{"Go, a signal in C", "SIGSEGV: segmentation violation\nPC=0x7f01 m=0 sigcode=1 addr=0x0\n" +
			"signal arrived during cgo execution\n\n" +
			"goroutine 1 gp=0xc0 m=0 mp=0x5 [syscall]:\nruntime.cgocall(0x1, 0x2)\n\t/go/src/runtime/cgocall.go:167 " +
			"+0x4b\nmain._Cfunc_mix()\n\t_cgo_gotypes.go:41 +0x3f\n" +
			registers,
			"SIGSEGV: segmentation violation at _cgo_gotypes.go:41"},
		{
			"Go, a signal from outside",
			"SIGSEGV: segmentation violation\nPC=0x46e3a1 m=0 sigcode=0\n\ngoroutine 0 gp=0x1 m=0 mp=0x2 [idle]:\n" +
				"runtime.futex(0x1)\n\t/go/src/runtime/sys_linux_amd64.s:557 +0x21\n\n" + registers,
			"SIGSEGV: segmentation violation",
		},
		{"Go, nil", "panic: runtime error: invalid memory address or nil pointer dereference\n" +
			"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n\n" +
			"goroutine 7 [running]:\nmain.f()\n\t/src/mix.go:3 +0x2\n",
			"panic: runtime error: invalid memory address or nil pointer dereference at mix.go:3"},
		{"Go, its runtime",
			"fatal error: concurrent map writes\n\ngoroutine 7 [running]:\nmain.f()\n\t/src/mix.go:3 +0x2\n",
			"fatal error: concurrent map writes at mix.go:3"},
		{"Go, its runtime's stack", "fatal error: unexpected signal during runtime execution\n[signal SIGSEGV]\n\n" +
			"runtime stack:\nruntime.throw(0x1)\n\t/go/panic.go:1\n\n" +
			"goroutine 1 [running]:\nmain.f()\n\t/src/mix.go:3 +0x2\n" + registers,
			"fatal error: unexpected signal during runtime execution at mix.go:3"},
		{"Python", "Traceback (most recent call last):\n  File \"plugin.py\", line 3, in <module>\n    import numpy\n" +
			"ModuleNotFoundError: No module named 'numpy'\n",
			"ModuleNotFoundError: No module named 'numpy'"},
		{"OpenMP of Intel", "OMP: Error #179: Function Can't open SHM failed:\n" +
			"OMP: System error #13: Permission denied\nAborted\n",
			"OMP: Error #179: Function Can't open SHM failed:"},
		{"Python, and words after it",
			"Traceback (most recent call last):\n  File \"plugin.py\", line 3\nKeyError: 'x'\n" +
				"Exception ignored in: <module 'threading'>\n",
			"KeyError: 'x'"},
		{"Python, two exceptions", "Traceback (most recent call last):\n  File \"a\"\nKeyError: 1\n\n" +
			"During handling of the above exception, another exception occurred:\n\n" +
			"Traceback (most recent call last):\n  File \"a\"\nValueError: 2\n", "ValueError: 2"},
		{"Python, a crash", "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n" +
			strings.Repeat("  File \"a\", line 1 in f\n", 2000),
			"Fatal Python error: Segmentation fault"},
		{"C++", "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no model\nAborted\n",
			"terminate called after throwing an instance of 'std::runtime_error': no model"},
		{"C++, and more of what looks like it",
			"terminate called after x\n" + strings.Repeat("  what():  no model\n", 3),
			"terminate called after x: no model"},
		{"C", "mix: mix.c:12: main: Assertion `n > 0' failed.\nmore\n",
			"mix: mix.c:12: main: Assertion `n > 0' failed."},
		{"the C library", "free(): invalid pointer\nmore\n", "free(): invalid pointer"},
		{"a sanitizer",
			"=================\n==7==ERROR: AddressSanitizer: heap-buffer-overflow\n" +
				strings.Repeat("    #1 0x1 in f\n", 2000),
			"==7==ERROR: AddressSanitizer: heap-buffer-overflow"},
		{"Rust", "thread 'main' panicked at src/main.rs:2:5:\nno model\nnote: run with `RUST_BACKTRACE=1`\n",
			"thread 'main' panicked at src/main.rs:2:5: no model"},
		{
			"JavaScript",
			"node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module 'grpc'\n" +
				strings.Repeat("    at f (node:internal:1:2)\n", 2000) + "  code: 'MODULE_NOT_FOUND'\n}\n\n" +
				"Node.js v20.20.2\n",
			"Error: Cannot find module 'grpc'",
		},
		{
			"JavaScript, an error that was caught",
			"RangeError [ERR_OUT_OF_RANGE]: 7\n    at f (a.js:1:2)\nanother way\n", "another way",
		},
		{"anything else", "a\nb\n", "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, _ := testJournal()
			j.writer().Write([]byte("before\n" + tt.in))
			if got := summary(j.last()); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			e := &PluginError{Plugin: "p", LastStderr: j.last()}
			lines := e.LastLines()
			if len(lines) > shownLines || !strings.HasPrefix(tt.want, lines[0]) &&
				!strings.Contains(strings.Join(lines, "\n"), strings.SplitN(tt.want, ": no model", 2)[0]) {
				t.Errorf("%q lacks %q", lines, tt.want)
			}
		})
	}
}

func FuzzLastWords(f *testing.F) {
	f.Add("panic: a\n\ngoroutine 1 [running]:\nmain.f()\n\t/a.go:1 +0x1\n")
	f.Add("SIGSEGV: x\nPC=0x1\n\ngoroutine 0 [idle]:\n\n")
	f.Add("Traceback (most recent call last):\n  a\nb: c\n")
	f.Add("thread 'main' panicked at a:\n\nb\n")
	f.Add("terminate called x\n what():\n")
	f.Add("terminate called x\n" + strings.Repeat(" what(): "+strings.Repeat("A", 1000)+"\n", 100))
	f.Add("terminate called x:\n" + strings.Repeat(traceback+"\n"+strings.Repeat("A", 1000)+":\n", 100))
	f.Add("panic: " + strings.Repeat("A", 1<<16) + "\n" + strings.Repeat(strings.Repeat("A", 10_000)+"\n", 100))
	f.Fuzz(func(t *testing.T, text string) {
		var w crashCause
		for _, l := range strings.Split(text, "\n") {
			w.line(l)
		}
		if n := len(w.fatal) + len(w.cause) + len(w.first) +
			len(strings.Join(w.lines, "")); n > (2+2+1+maxMessage+3)*(maxWords+2) {
			t.Errorf("%d bytes are kept", n)
		}
		if s := summary(text); strings.Contains(s, "\n") {
			t.Errorf("%q", s)
		}
		if n := len((&PluginError{LastStderr: text}).LastLines()); n > shownLines {
			t.Errorf("%d lines", n)
		}
	})
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
