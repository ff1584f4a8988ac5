package stage

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
)

// EachRow calls work once for each row in [0,n), from at most runtime.GOMAXPROCS(0) goroutines, in no particular order.
// It returns when all calls have returned. The result does not depend on the order if the work on a row accesses only
// that row:
//
//	stage.EachRow(b.Rows(), func(row int) { augment(row, b.Rand(row)) })
//
// If work panics, no further row is begun and EachRow panics in the calling goroutine. So a panic in Process fails the
// batch, whichever goroutine it was in.
func EachRow(n int, work func(row int)) {
	var next atomic.Int64
	var panicked atomic.Pointer[panicError]
	loop := func() {
		defer func() {
			if value := recover(); value != nil {
				panicked.CompareAndSwap(nil, recovered(value))
			}
		}()
		for row := int(next.Add(1)) - 1; row < n && panicked.Load() == nil; row = int(next.Add(1)) - 1 {
			work(row)
		}
	}
	var helpers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		helpers.Go(loop)
	}
	loop()
	helpers.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
}

// panicError is a recovered panic with the place where it happened.
type panicError struct {
	value any
	place string // file:line, or "" if it is unknown
	stack string
}

func (p *panicError) Error() string {
	if p.place == "" {
		return fmt.Sprintf("panic: %v", p.value)
	}
	return fmt.Sprintf("panic: %v (%s)", p.value, p.place)
}

// recovered describes what recover returned, in the deferred function that called it.
func recovered(value any) *panicError {
	if p, ok := value.(*panicError); ok { // of EachRow, which knows the place of the panic
		return p
	}
	p := &panicError{value: value, stack: string(debug.Stack())}
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for raised := false; ; {
		f, more := frames.Next()
		// Methods of Batch panic for what their caller did.
		caller := !strings.HasPrefix(f.Function, "runtime.") && !strings.Contains(f.Function, "/stage.(*Batch).") &&
			!strings.Contains(f.Function, "/stage.view[")
		if raised && caller {
			p.place = fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
			return p
		}
		raised = raised || f.Function == "runtime.gopanic"
		if !more {
			return p
		}
	}
}
