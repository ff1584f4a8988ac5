package dataset

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const stereoFLAC = "../../../shared/audio/internal/flac/testdata/16-24000-2.flac"

func TestDecode(t *testing.T) {
	dir := folder(t, "mono|a", "stereo|a", "full|a")
	clip(t, dir, "mono", 22050, 1, []int16{0, 1, -1, 32767, -32768})
	clip(t, dir, "stereo", 22050, 2, []int16{10, 20, -32768, -32768, 32767, 32767, 1, 0})
	full := make([]int16, 4410) // a square wave at full scale, where a filter overshoots
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
			t.Errorf("the part from %d has different bits than the whole", from)
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
		{
			"shorter", func() { clip(t, dir, "long", 44100, 1, ramp(0, 3999)) }, 0,
			"changed since it was indexed: now 3999 frames of 1 channel at 44100 Hz",
		},
		{"another rate", func() { clip(t, dir, "long", 22050, 1, ramp(0, 4000)) }, 0, "at 22050 Hz"},
		{
			"truncated", func() { write(t, row.Path, wavFile(44100, 1, ramp(0, 4000))[:2044]) }, 0,
			"declares 8000 bytes, but the file has 2000",
		},
		{"gone", func() { os.Remove(row.Path) }, 0, "no such file"},
		{"a folder", func() { os.Mkdir(row.Path, 0o755) }, 0, "not a regular file"},
	} {
		c.change()
		contains(t, d.Decode(make([]float32, 1000), &row, c.from), c.err)
	}
}

// File, conversion and decoder do not change the level of a tone.
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
		// rounding to 16 bits is 1.5e-5
		if want := 0.5 * math.Sin(2*math.Pi*hz*float64(i)/22050); math.Abs(float64(got[i])-want) > 2e-5 {
			t.Fatalf("sample %d is %v, want %v", i, got[i], want)
		}
	}
}

// The audio of an id is a .wav file, or a file with another ending if there is no .wav. Links are followed.
func TestAudioFiles(t *testing.T) {
	dir := folder(t, "A/wav|a", "A/flac|a", "A/both|a", "A/link|a", "A/mp2|a", "A/mp3|a", "A/opus|a")
	flac, err := os.ReadFile(stereoFLAC)
	if err != nil {
		t.Fatal(err)
	}
	clip(t, dir, "A/wav", 22050, 1, ramp(0, 100))
	clip(t, dir, "A/both", 22050, 1, ramp(0, 100))
	write(t, filepath.Join(dir, "wavs/A/both.flac"), flac)
	write(t, filepath.Join(dir, "wavs/A/flac.flac"), flac)
	write(t, filepath.Join(dir, "wavs/A/mp2.wav"), []byte("\xFF\xFD\x90\x64"))
	for _, name := range []string{"mpeg1-44100-1.mp3", "silk-48000-1.opus"} {
		data, err := os.ReadFile(filepath.Join("../../../shared/audio/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "wavs/A", filepath.Ext(name)[1:]+filepath.Ext(name)), data)
	}
	if err := os.Symlink("flac.flac", filepath.Join(dir, "wavs/A/link.flac")); err != nil {
		t.Fatal(err)
	}
	ix := open(t, Config{Dir: dir, SampleRate: 22050})
	got := map[string]int{}
	for i := range ix.Rows {
		r := &ix.Rows[i]
		got[filepath.Base(r.Path)] = r.FileRate
		if err := NewDecoder(22050).Decode(make([]float32, r.Samples), r, 0); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
	}
	if want := map[string]int{
		"wav.wav": 22050, "both.wav": 22050, "flac.flac": 24000, "link.flac": 24000, "mp3.mp3": 44100,
		"opus.opus": 48000,
	}; !maps.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	path := filepath.Join(dir, "wavs/A/mp2.wav")
	want := "not a supported kind of MP3: layer 2 of MPEG audio; convert with: ffmpeg -i " + path + " -c:a pcm_s24le "
	other := strings.TrimSuffix(path, "wav") + "new.wav"
	want += other + " && mv " + other + " " + path
	if len(ix.Rejected) != 1 || !strings.HasSuffix(ix.Rejected[0].Reason, want) {
		t.Errorf("rejected %+v, want %q", ix.Rejected, want)
	}
}

// A row may also be a part of a FLAC file.
func TestDecodeFLACPart(t *testing.T) {
	row := Row{
		Path: stereoFLAC, Frames: 10000, FileRate: 24000, FileChannels: 2, Samples: 10000,
	}
	whole := make([]float32, row.Samples)
	if err := NewDecoder(24000).Decode(whole, &row, 0); err != nil {
		t.Fatal(err)
	}
	row.Offset, row.Frames, row.Samples = 3000, 4000, 4000
	part := make([]float32, row.Samples)
	if err := NewDecoder(24000).Decode(part, &row, 0); err != nil || !slices.Equal(part, whole[3000:7000]) {
		t.Errorf("the part differs; %v", err)
	}

	// The same part as a separate file gives the same bits at another rate.
	cut := row
	cut.Path, cut.Offset, cut.FileChannels = filepath.Join(t.TempDir(), "cut.wav"), 0, 1
	write(t, cut.Path, floatFile(24000, part))
	row.Samples, cut.Samples = 2000, 2000 // at 12 kHz
	a, b := make([]float32, 2000), make([]float32, 2000)
	d := NewDecoder(12000)
	if err := errors.Join(d.Decode(a, &row, 0), d.Decode(b, &cut, 0)); err != nil || !slices.Equal(a, b) {
		t.Errorf("a part of a file differs from a file of that part; %v", err)
	}
}

// Float samples beyond full scale are clipped. Samples that are not valid audio put the clip in quarantine.
func TestDecodeFloat(t *testing.T) {
	dir := folder(t, "loud|a", "broken|a")
	broken := make([]float32, 100)
	broken[70] = float32(math.NaN())
	write(t, filepath.Join(dir, "wavs/loud.wav"), floatFile(22050, []float32{0.5, 1.5, -7, 1}))
	write(t, filepath.Join(dir, "wavs/broken.wav"), floatFile(22050, broken))
	ix := open(t, Config{Dir: dir, SampleRate: 22050})
	got := make([]float32, 4)
	err := NewDecoder(22050).Decode(got, &ix.Rows[0], 0)
	if err != nil || !slices.Equal(got, []float32{0.5, 1, -1, 1}) {
		t.Errorf("got %v, %v", got, err)
	}
	contains(t, NewDecoder(22050).Decode(make([]float32, 100), &ix.Rows[1], 0),
		"sample 70 of channel 1 is NaN: not finite")
	contains(t, NewDecoder(22050).Decode(make([]float32, 70), &ix.Rows[1], 0), "")
}

// floatFile writes a mono WAV file of 32-bit floats.
func floatFile(rate int, samples []float32) []byte {
	b := wavFile(rate, 1, make([]int16, 2*len(samples)))
	b[20], b[32], b[34] = 3, 4, 32
	for i, v := range samples {
		binary.LittleEndian.PutUint32(b[44+4*i:], math.Float32bits(v))
	}
	return b
}

// A decoder does not allocate for each clip of any format, except for opening the file.
func TestDecodeAllocations(t *testing.T) {
	row := Row{
		Path: stereoFLAC, Frames: 10000, FileRate: 24000, FileChannels: 2, Samples: 9188,
	}
	d, dst := NewDecoder(22050), make([]float32, row.Samples)
	if n := testing.AllocsPerRun(10, func() {
		if err := d.Decode(dst, &row, 0); err != nil {
			t.Fatal(err)
		}
	}); n > 12 {
		t.Errorf("%v allocations for each clip", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	dir := folder(b, "pcm16|a", "float32|a", "48k|a")
	clip(b, dir, "pcm16", 22050, 1, ramp(0, 22050))
	clip(b, dir, "48k", 48000, 1, ramp(0, 48000))
	write(b, filepath.Join(dir, "wavs/float32.wav"), floatFile(22050, make([]float32, 22050)))
	rows := open(b, Config{Dir: dir, SampleRate: 22050}).Rows
	rows = append(rows, Row{
		ID: "flac 24k stereo", Path: stereoFLAC, Frames: 10000, FileRate: 24000,
		FileChannels: 2, Samples: 9188,
	})
	for _, row := range rows {
		b.Run(row.ID, func(b *testing.B) {
			d, dst := NewDecoder(22050), make([]float32, row.Samples)
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Decode(dst, &row, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(row.Samples)/22050*float64(b.N)/b.Elapsed().Seconds(), "audio-s/s")
		})
	}
}
