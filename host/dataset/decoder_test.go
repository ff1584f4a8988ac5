package dataset

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDecode(t *testing.T) {
	dir := folder(t, "mono|a", "stereo|a", "full|a")
	clip(t, dir, "mono", 22050, 1, []int16{0, 1, -1, 32767, -32768})
	clip(t, dir, "stereo", 22050, 2, []int16{10, 20, -32768, -32768, 32767, 32767, 1, 0})
	full := make([]int16, 4410) // a square wave at full scale: a filter overshoots its edges
	for i := range full {
		full[i] = 32767
		if i/200%2 == 1 {
			full[i] = -32768
		}
	}
	clip(t, dir, "full", 44100, 1, full)
	ix := open(t, Config{Dir: dir, SampleRate: 22050})
	d := NewDecoder(22050)
	decode := func(row, from, n int) []float32 {
		t.Helper()
		dst := make([]float32, n)
		if err := d.Decode(dst, &ix.Rows[row], from); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	for _, c := range []struct {
		row, from int
		want      []float32
	}{
		{0, 0, []float32{0, 1. / 32768, -1. / 32768, 32767. / 32768, -1}},
		{0, 2, []float32{-1. / 32768, 32767. / 32768}},
		{1, 0, []float32{15. / 32768, -1, 32767. / 32768, 0.5 / 32768}},
		{1, 3, []float32{0.5 / 32768}},
	} {
		if got := decode(c.row, c.from, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("row %d from %d: got %v, want %v", c.row, c.from, got, c.want)
		}
	}
	whole := decode(2, 0, 2205)
	if lo, hi := slices.Min(whole), slices.Max(whole); lo != -1 || hi != 1 {
		t.Errorf("samples reach from %v to %v", lo, hi)
	}
	for _, from := range []int{0, 1, 1000, 2204} {
		if got := decode(2, from, min(300, 2205-from)); !slices.Equal(got, whole[from:from+len(got)]) {
			t.Errorf("the part from %d has other bits than the whole", from)
		}
	}
}

func TestDecodeRow(t *testing.T) {
	dir := folder(t, "long|a")
	clip(t, dir, "long", 44100, 1, ramp(0, 4000))
	row := open(t, Config{Dir: dir, SampleRate: 22050}).Rows[0]

	// A row that is a part of its file.
	part, other := row, row
	part.Offset, part.Frames, part.Samples = 1000, 2000, 1000
	write(t, filepath.Join(dir, "wavs", "cut.wav"), wavFile(44100, 1, ramp(1000, 2000)))
	other.Path, other.Frames, other.Samples = filepath.Join(dir, "wavs", "cut.wav"), 2000, 1000
	a, b := make([]float32, 1000), make([]float32, 1000)
	d := NewDecoder(22050)
	if err := d.Decode(a, &part, 0); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(b, &other, 0); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) {
		t.Error("a part of a file differs from a file of that part")
	}

	for _, c := range []struct {
		name   string
		change func()
		from   int
		err    string
	}{
		{"beyond the end", func() {}, 1001, "samples 1001 to 2001 of a clip of 2000"},
		{"before the start", func() {}, -1, "samples -1"},
		{"shorter", func() { clip(t, dir, "long", 44100, 1, ramp(0, 3999)) }, 0, "changed since it was indexed: now 3999 frames of 1 channels at 44100 Hz"},
		{"another rate", func() { clip(t, dir, "long", 22050, 1, ramp(0, 4000)) }, 0, "at 22050 Hz"},
		{"truncated", func() { write(t, row.Path, wavFile(44100, 1, ramp(0, 4000))[:2044]) }, 0, "declares 8000 bytes, the file has 2000"},
		{"gone", func() { os.Remove(row.Path) }, 0, "no such file"},
		{"a folder", func() { os.Mkdir(row.Path, 0o755) }, 0, "not a regular file"},
	} {
		c.change()
		contains(t, d.Decode(make([]float32, 1000), &row, c.from), c.err)
	}
}

// The level of a tone does not change on its way through file, conversion and decoder.
func TestDecodeResamples(t *testing.T) {
	const hz, rate = 1000, 48000
	dir := folder(t, "tone|a")
	pcm := make([]int16, rate)
	for i := range pcm {
		pcm[i] = int16(math.Round(16384 * math.Sin(2*math.Pi*hz*float64(i)/rate)))
	}
	clip(t, dir, "tone", rate, 1, pcm)
	row := open(t, Config{Dir: dir, SampleRate: 22050}).Rows[0]
	if row.Samples != 22050 {
		t.Fatalf("%d samples", row.Samples)
	}
	got := make([]float32, row.Samples)
	if err := NewDecoder(22050).Decode(got, &row, 0); err != nil {
		t.Fatal(err)
	}
	for i := 1000; i < len(got)-1000; i++ {
		if want := 0.5 * math.Sin(2*math.Pi*hz*float64(i)/22050); math.Abs(float64(got[i])-want) > 2e-5 { // 16-bit rounding is 1.5e-5
			t.Fatalf("sample %d is %v, want %v", i, got[i], want)
		}
	}
}
