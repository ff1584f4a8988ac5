package plugintry

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		length       int
		pixel        float64
		second, last string
	}{
		{1200, 0.0025, "0.2s", "2.8s"}, // 3 s of frames of 10 ms
		{1764, 0.0029, "0.2s", "5s"},   // 441 frames of 11.6 ms
		{101, 0.5, "50s", "50s"},
		{10, 0.0025, "0s", "0s"},
	} {
		all := ticks(c.length, c.pixel, "s")
		if all[0] != (label{0, "0s"}) || all[min(1, len(all)-1)].text != c.second || all[len(all)-1].text != c.last {
			t.Errorf("%d pixels of %g s: %v", c.length, c.pixel, all)
		}
		for i := range all[1:] {
			if all[i+1].at-all[i].at < apart {
				t.Errorf("%v and %v overlap", all[i], all[i+1])
			}
		}
	}
}

// TestAxes: below a matrix are ticks with labels every 0.2 s, and beside it every 20 columns.
func TestAxes(t *testing.T) {
	const frames, columns = 85, 80 // the last label needs more room than the values after its tick
	file := filepath.Join(t.TempDir(), "mel.png")
	if _, err := writePicture(file, "mel", make([]float32, frames*columns), columns, 0.01); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decoded, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	picture := decoded.(*image.Gray)
	lit := func(x0, y0, x1, y1 int) (n int) {
		for x := x0; x < x1; x++ {
			for y := y0; y < y1; y++ {
				if picture.GrayAt(x, y).Y > 0 {
					n++
				}
			}
		}
		return n
	}
	const height = columns * cell
	last := ticks(frames*cell, 0.01/cell, "s")[4]
	if want := axisLeft + last.at + widthOf(last.text); picture.Bounds().Dx() != want || want <= axisLeft+frames*cell {
		t.Errorf("the picture is %d pixels wide, and its last label ends at %d", picture.Bounds().Dx(), want)
	}
	for i := range 5 { // 0.2 s are 20 frames
		x := axisLeft + i*20*cell
		if lit(x, height, x+1, height+tick) != tick || lit(x+1, height, x+20*cell, height+tick) != 0 ||
			lit(x, height+tick, x+20*cell, height+axisBottom) < 20 {
			t.Errorf("no tick and label of %d00 ms", 2*i)
		}
	}
	for i := range 4 {
		y := height - 1 - i*20*cell
		if lit(axisLeft-tick, y, axisLeft, y+1) != tick || lit(0, max(0, y-12), axisLeft-tick, min(height, y+12)) < 10 {
			t.Errorf("no tick and label of column %d", 20*i)
		}
	}
	if lit(axisLeft, 0, axisLeft+frames*cell, height) != 0 {
		t.Error("axes are drawn over the values")
	}
}
