package boards

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestEachSecond: what costs time is asked for once in a second, however often a page looks.
func TestEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		look := eachSecond(func() int { asked++; return asked })
		for i := range 13 { // a look each quarter of a second
			if got := look(); got != 1+i/4 {
				t.Errorf("look %d: the figures of second %d", i, got)
			}
			time.Sleep(time.Second / 4)
		}
	})
}
