package fuse_test

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
)

// emulation runs programs on the CPU.
type emulation struct {
	program *cudactest.Program
	options []string // of the compiler
	// again runs all twice, with the blocks in another order, which must give the same bits.
	again bool
}

func (e *emulation) compile(t *testing.T, sources []cudactest.Source) {
	e.program = cudactest.Compile(t, cudac.Prelude, sources, e.options...)
}

func (e *emulation) run(t *testing.T, source int, launches []cudac.Launch, buffers [][]byte) {
	t.Helper()
	if e.again {
		var first [][]byte
		for _, b := range buffers {
			c := poisoned(len(b))
			copy(c[:cap(c)], b[:cap(b)])
			first = append(first, c)
		}
		e.launch(t, source, launches, first)
		defer func() {
			for i, b := range buffers {
				if !bytes.Equal(first[i][:cap(b)], b[:cap(b)]) {
					t.Errorf("%s, pointer %d: other bits in the second run", launches[0].Function, i)
				}
			}
		}()
	}
	e.launch(t, source, launches, buffers)
}

func (e *emulation) launch(t *testing.T, source int, launches []cudac.Launch, buffers [][]byte) {
	t.Helper()
	for _, l := range launches {
		var pointers []uintptr
		for _, at := range l.Arguments {
			pointers = append(pointers, uintptr(unsafe.Pointer(unsafe.SliceData(buffers[at]))))
		}
		launch, by := cudactest.Launch, e.program.Launch
		if l.Cooperative {
			launch, by = cudactest.CooperativeLaunch, e.program.CooperativeLaunch
		}
		if err := launch(
			by, e.program.Function(source, l.Function), 0, l.Blocks, l.Threads, l.Shared, pointers,
		); err != nil {
			t.Fatal(err)
		}
	}
}
