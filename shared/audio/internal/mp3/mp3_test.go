package mp3

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

const folder = "../../testdata/"

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(folder + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read returns the header and all samples of a file.
func read(b []byte) (Header, []float32, error) {
	r := bytes.NewReader(b)
	h, err := ReadHeader(r, r.Size())
	if err != nil {
		return h, nil, err
	}
	samples := make([]float32, h.Frames)
	return h, samples, new(Decoder).Read(samples, r, h, 0)
}

// TestTags: tags before and after the frames change nothing. Without the tag of the encoder, the samples that it added
// stay.
func TestTags(t *testing.T) {
	b := file(t, "mpeg1-44100-1.mp3")
	whole, want, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	id3 := append([]byte("ID3\x04\x00\x10\x00\x00\x00\x05"), make([]byte, 15)...) // 5 bytes and a footer
	files := map[string][]byte{
		"ID3v2":  append(slices.Clone(id3), b...),
		"two":    slices.Concat(id3, id3, b),
		"ID3v1":  append(slices.Clone(b), append([]byte("TAG"), make([]byte, 125)...)...),
		"APE":    append(slices.Clone(b), "APETAGEX and more"...),
		"zeros":  append(slices.Clone(b), make([]byte, 1000)...),
		"a byte": append(slices.Clone(b), 0),
	}
	for n := len("ID3"); n < 10; n++ {
		files[fmt.Sprintf("the first %d bytes of ID3v2", n)] = slices.Concat(b, id3[:n])
	}
	for name, tagged := range files {
		if h, got, err := read(tagged); err != nil || h.Frames != whole.Frames || !slices.Equal(got, want) {
			t.Errorf("%s: %d samples, want %d; %v", name, h.Frames, whole.Frames, err)
		}
	}
	bare := b[whole.offsets[0]:]
	h, got, err := read(bare)
	n := len(whole.offsets)
	if err != nil || h.Frames != 1152*n || !slices.Equal(got[whole.parts[0].skip:][:len(want)], want) {
		t.Errorf("without a tag: %d samples of %d frames, or others; %v", h.Frames, n, err)
	}
}

// TestJoined: a file that was joined from several has the samples of each, whatever tags are between them.
func TestJoined(t *testing.T) {
	b := file(t, "mpeg1-44100-1.mp3")
	h, one, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	id3v1 := append([]byte("TAG"), make([]byte, 125)...)
	ape := append([]byte("APETAGEX\xD0\x07\x00\x00\x28\x00\x00\x00"), make([]byte, 16+40)...)
	for name, between := range map[string][]byte{
		"nothing":  nil,
		"ID3v1":    id3v1,
		"title +":  append([]byte("TAG+ and a title"), make([]byte, 112)...),
		"extended": slices.Concat([]byte("TAG+"), make([]byte, 223), id3v1),
		"ID3v2":    append([]byte("ID3\x04\x00\x00\x00\x00\x00\x05"), make([]byte, 5)...),
		"APE":      slices.Concat(ape, id3v1),
		"Lyrics3":  slices.Concat([]byte("LYRICSBEGININD0000211000024LYRICS200"), id3v1),
		"long":     slices.Concat([]byte("LYRICSBEGIN"), bytes.Repeat([]byte("x"), 64<<10-15), []byte("LYRICSEND")),
	} {
		joined := slices.Concat(b, between, b, between)
		h, got, err := read(joined)
		if err != nil || !slices.Equal(got, slices.Concat(one, one)) {
			t.Errorf("%s: %d samples, want twice %d; %v", name, h.Frames, len(one), err)
			continue
		}
		r, middle := bytes.NewReader(joined), make([]float32, 2000)
		if err := new(Decoder).Read(middle, r, h, len(one)-1000); err != nil ||
			!slices.Equal(middle, got[len(one)-1000:][:2000]) {
			t.Errorf("%s: other samples in the middle; %v", name, err)
		}
		if err := new(Decoder).Read(middle, r, h, len(one)); err != nil || !slices.Equal(middle, one[:2000]) {
			t.Errorf("%s: other samples in the second recording; %v", name, err)
		}
		// Without the tag of its encoder, the second recording counts with all samples of its frames.
		bare := b[h.offsets[0]:]
		h2, _, err := read(slices.Concat(b, between, bare))
		if err != nil || h2.Frames != len(one)+1152*len(h.offsets)/2 {
			t.Errorf("%s, then frames only: %d samples; %v", name, h2.Frames, err)
		}
	}
	few := b[:h.offsets[len(h.offsets)/3]]
	if _, _, err := read(slices.Concat(few, b)); err == nil || !strings.Contains(err.Error(), "its tag declares") {
		t.Errorf("the first recording is truncated: %v", err)
	}
	h2, got, err := read(slices.Concat(b, id3v1, []byte("and more")))
	if err != nil || h2.Remarks != remark.Junk || !slices.Equal(got, one) {
		t.Errorf("other bytes after a tag: %v, %v", h2.Remarks, err)
	}
}

// TestEnds: a recording without its end, or with other bytes after it, is read up to there.
func TestEnds(t *testing.T) {
	for _, name := range []string{"mpeg1-44100-1.mp3", "mpeg25-8000-1.mp3", "free-16000-2.mp3"} {
		b := file(t, name)
		h, whole, err := read(b)
		if err != nil || h.Remarks != 0 {
			t.Fatal(err, h.Remarks)
		}
		last := h.offsets[len(h.offsets)-1]
		for what, c := range map[string]struct {
			b    []byte
			want remark.Set
			lost int // samples, at most
		}{
			"the last frame is cut":    {b[:len(b)-50], remark.Cut, h.first.samples},
			"a byte is missing":        {b[:len(b)-1], remark.Cut, h.first.samples},
			"the last frame is absent": {b[:last], remark.Cut, h.first.samples},
			"other bytes": {
				append(slices.Clone(b), "other bytes \xFF\xFB\x90\xC0 at the end"...), remark.Junk, 0,
			},
		} {
			h, got, err := read(c.b)
			if err != nil || h.Remarks != c.want && name != "free-16000-2.mp3" || len(got) < len(whole)-c.lost ||
				!slices.Equal(got, whole[:len(got)]) {
				t.Errorf("%s, %s: %d of %d samples, %v; %v", name, what, len(got), len(whole), h.Remarks, err)
			}
		}
	}
}

func TestReadHeaderRefuses(t *testing.T) {
	b := file(t, "mpeg1-44100-1.mp3")
	h, _, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	second := h.offsets[1]
	other := file(t, "mpeg2-24000-1.mp3")
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"no frame":        {[]byte("ID3\x04\x00\x00\x00\x00\x00\x00"), "no MP3 frame with audio"},
		"only the tag":    {b[:h.offsets[0]], "its tag declares"},
		"a tag, then all": {slices.Concat(b[:h.offsets[0]], b), "its tag declares"},
		"garbage":         {append(slices.Clone(b[:second]), make([]byte, 5000)...), "its tag declares"},
		"in the middle": {
			slices.Concat(b[:h.offsets[6]], []byte("garbage"), b[h.offsets[6]:]), "damaged: no frame begins there",
		},
		"half is missing": {b[:h.offsets[len(h.offsets)/3]], "its tag declares"},
		"another rate":    {append(slices.Clone(b[:second]), other...), "sample rate or channels change"},
		"one free frame":  {[]byte{0xFF, 0xF3, 0x02, 0xC0}, "free bit rate without a second and a third frame"},
		"more padding than samples": {func() []byte {
			bad := bytes.Clone(b[:second])
			at := h.first.main                            // of the tag
			copy(bad[at+8:], "\x00\x00\x00\x01")          // frames
			copy(bad[at+8+4+4+100+4+21:], "\xFF\xFF\xFF") // delay and padding
			return bad
		}(), "the audio has no samples"},
	} {
		if _, _, err := read(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestCut: frames whose data lies before the start of the file are silent, and the frames after them as in the whole
// file.
func TestCut(t *testing.T) {
	b := file(t, "mpeg1-32000-2.mp3")
	h, _, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	_, whole, err := read(b[h.offsets[0]:])
	if err != nil {
		t.Fatal(err)
	}
	_, cut, err := read(b[h.offsets[2]:])
	if err != nil {
		t.Fatal(err)
	}
	if from := 1152 * 4; !slices.Equal(cut[from:], whole[from+2*1152:]) {
		t.Error("later frames differ")
	}
	bad := file(t, "mpeg1-44100-1.mp3")
	if h, _, err = read(bad); err != nil {
		t.Fatal(err)
	}
	begin := func(frame int, high, low byte) { // sets where the data of a frame begins
		side := bad[h.offsets[frame]+headerSize:]
		side[0], side[1] = high, side[1]&0x7F|low
	}
	begin(2, 0, 0)
	begin(3, 0xFF, 0x80)
	bad = bad[h.offsets[2]:]
	_, _, err = read(bad)
	if err == nil || !strings.Contains(err.Error(), "damaged: its data begins 511 bytes before it") {
		t.Errorf("data before that of the frame before: %v", err)
	}
}

// For any bytes: an error, or readable samples.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"mpeg1-44100-1.mp3", "mpeg1-32000-2.mp3", "mpeg2-24000-1.mp3", "mpeg2-22050-1.mp3",
		"mpeg25-8000-1.mp3", "mpeg25-12000-2.mp3", "free-16000-2.mp3"} {
		b := file(f, name)
		f.Add(b[:min(1500, len(b))])
		f.Add(b[len(b)/2:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		h, err := ReadHeader(r, r.Size())
		if err != nil {
			return
		}
		var d Decoder
		d.Read(make([]float32, min(h.Frames, 20_000)), r, h, 0)
		d.Read(make([]float32, h.Frames-h.Frames/2), r, h, h.Frames/2)
	})
}
