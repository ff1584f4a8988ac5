package hint

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestErrorf(t *testing.T) {
	inner := Errorf("make the folder", "open %s: %w", "x", fs.ErrNotExist)
	outer := fmt.Errorf("start: %w", inner)
	if got := outer.Error(); got != "start: open x: file does not exist" {
		t.Errorf("text %q", got)
	}
	if !errors.Is(outer, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
	if got := Of(outer); got != "make the folder" {
		t.Errorf("hint %q", got)
	}
	if got := Of(Errorf("try this first", "again: %w", outer)); got != "try this first" {
		t.Errorf("outermost hint %q", got)
	}
	two := Errorf("h", "%w and %w", fs.ErrExist, fs.ErrPermission)
	if !errors.Is(two, fs.ErrExist) || !errors.Is(two, fs.ErrPermission) {
		t.Error("one of two causes is lost")
	}
}

func TestOfNothing(t *testing.T) {
	if got := Of(errors.New("plain")) + Of(nil); got != "" {
		t.Errorf("hint %q", got)
	}
}
