//go:build faults

package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The program that is built with the tag faults makes one operation of one place in the code fail. XTTS_FAULTS_LIST
// names a file that gets a line for each place and operation that a run comes to: "host/observe/report/jsonl.go:131
// write". XTTS_FAULTS_AT is such a line with the error, and with "always" unless it is for the first time only:
// "host/observe/report/jsonl.go:131 write EIO".
var faults = struct {
	mu   sync.Mutex
	seen map[string]bool
	done bool
}{seen: map[string]bool{}}

var faultErrors = map[string]unix.Errno{
	"EIO": unix.EIO, "ENOSPC": unix.ENOSPC, "EACCES": unix.EACCES, "ENOLCK": unix.ENOLCK,
}

// module is what paths of source files are shown below.
const module = "github.com/xtts-host/xtts-host/"

// fault returns the error that is injected into an operation here.
func fault(op, path string) error {
	at := site() + " " + op
	faults.mu.Lock()
	defer faults.mu.Unlock()
	if list := os.Getenv("XTTS_FAULTS_LIST"); list != "" && !faults.seen[at] {
		faults.seen[at] = true
		f, err := os.OpenFile(list, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, at)
		f.Close()
	}
	wanted := strings.Fields(os.Getenv("XTTS_FAULTS_AT"))
	if len(wanted) < 3 || wanted[0]+" "+wanted[1] != at || faults.done {
		return nil
	}
	faults.done = len(wanted) == 3
	return &fs.PathError{Op: op, Path: path, Err: cmp.Or(faultErrors[wanted[2]], unix.EIO)}
}

// site is the place in the code that has called this package, perhaps through the standard library.
func site() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		name, ours := strings.CutPrefix(frame.Function, module)
		if ours && !strings.HasPrefix(name, "host/base/files.") {
			folder, _, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ".")
			return fmt.Sprintf("%s/%s:%d", filepath.Join(filepath.Dir(name), folder), filepath.Base(frame.File),
				frame.Line)
		}
		if !more {
			return "main"
		}
	}
}
