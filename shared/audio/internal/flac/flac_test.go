package flac

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

// signal is what scripts/audio/flac.py writes: sample i of channel c, with the given number of bits.
func signal(bits, i, c int) int {
	const length = 2500
	part, at := i/length, i%length
	triangle := max((at*(c+3))%400-200, 200-(at*(c+3))%400)/2 - 50
	noise := (at*at*40503+at*977*(c+1))/64%256 - 128
	v := []int{0, triangle, noise, 2 * triangle}[part] << (bits - 8)
	if bits > 8 {
		v += i * i % 251
	}
	return v
}

func TestRead(t *testing.T) {
	var d Decoder
	for _, c := range []struct {
		file string
		want Header
	}{
		{"8-16000-1", Header{SampleRate: 16000, Channels: 1, Bits: 8}},
		{"16-24000-2", Header{SampleRate: 24000, Channels: 2, Bits: 16}},
		{"24-44100-3", Header{SampleRate: 44100, Channels: 3, Bits: 24}},
		{"16-12345-1", Header{SampleRate: 12345, Channels: 1, Bits: 16}},
	} {
		data, err := os.ReadFile("testdata/" + c.file + ".flac")
		if err != nil {
			t.Fatal(err)
		}
		r := bytes.NewReader(data)
		h, err := ReadHeader(r, r.Size())
		if err != nil {
			t.Fatal(err)
		}
		c.want.Frames, c.want.Offset, c.want.block = 10000, h.Offset, h.block
		if h != c.want {
			t.Errorf("%s: header %+v, want %+v", c.file, h, c.want)
		}
		want := make([]float32, h.Frames)
		for i := range want {
			sum := 0
			for channel := range h.Channels {
				sum += signal(h.Bits, i, channel)
			}
			want[i] = float32(float64(sum) / float64(h.Channels) / float64(int(1)<<(h.Bits-1)))
		}
		for _, part := range [][2]int{{0, 10000}, {0, 1}, {9999, 1}, {4000, 200}, {2499, 5002}, {10000, 0}} {
			got := make([]float32, part[1])
			err := d.Read(got, r, r.Size(), h, part[0])
			if err != nil || !slices.Equal(got, want[part[0]:part[0]+part[1]]) {
				t.Errorf("%s: %d samples from %d differ; %v", c.file, part[1], part[0], err)
			}
		}
	}
}

// stream returns a FLAC file of verbatim 16-bit mono frames, without a seek table.
type stream struct {
	samples  []int16
	block    int
	variable bool
}

func (s stream) header() []byte {
	b := append([]byte("fLaC\x80\x00\x00\x22"), byte(s.block>>8), byte(s.block), byte(s.block>>8), byte(s.block), 0, 0,
		0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, 22050<<44|15<<36|uint64(len(s.samples)))
	return append(b, make([]byte, 16)...)
}

func (s stream) bytes() []byte {
	b := s.header()
	for n := 0; n*s.block < len(s.samples); n++ {
		block := s.samples[n*s.block : min(len(s.samples), (n+1)*s.block)]
		frame := []byte{0xFF, 0xF8, 0x76, 0x08} // 16-bit block size, 22.05 kHz, mono of 16 bits
		number := n
		if s.variable {
			frame[1]++
			number = n * s.block
		}
		if number < 0x80 {
			frame = append(frame, byte(number))
		} else {
			frame = append(frame, []byte(string(rune(number)))...) // the same code, for these runes
		}
		frame = binary.BigEndian.AppendUint16(frame, uint16(len(block)-1))
		frame = append(frame, crc8(frame), 2) // 2: verbatim
		for _, v := range block {
			frame = binary.BigEndian.AppendUint16(frame, uint16(v))
		}
		b = append(b, binary.BigEndian.AppendUint16(frame, crc16(0, frame))...)
	}
	return b
}

// counter counts the bytes that are read.
type counter struct {
	*bytes.Reader
	n int
}

func (c *counter) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(b, at)
	c.n += n
	return n, err
}

// A part of a long file is found without decoding everything before it, also if samples look like frame headers.
func TestSeek(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := stream{samples: make([]int16, 700_000), block: 1152}
	for i := range s.samples {
		s.samples[i] = int16(random.Uint32())
	}
	fake := stream{samples: make([]int16, 64), block: 64}.bytes()[42:]
	for i := range fake[:40] { // a header and more
		s.samples[300_000+i] = int16(fake[i])<<8 | int16(fake[(i+1)%len(fake)])
	}
	var d Decoder
	for _, variable := range []bool{false, true} {
		s.variable = variable
		r := &counter{Reader: bytes.NewReader(s.bytes())}
		h, err := ReadHeader(r, r.Size())
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []int{0, 1, 1151, 1152, 299_990, 300_010, 650_000, 699_999} {
			r.n = 0
			got := make([]float32, min(5000, len(s.samples)-from))
			if err := d.Read(got, r, r.Size(), h, from); err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if want := float32(s.samples[from+i]) / 32768; v != want {
					t.Fatalf("variable %v: sample %d is %v, want %v", variable, from+i, v, want)
				}
			}
			if r.n > 700_000 {
				t.Errorf("%d of %d bytes were read for the samples from %d on", r.n, r.Size(), from)
			}
		}
	}
}

// A forged header in the samples may mislead the search. The result is still right.
func TestSeekMisled(t *testing.T) {
	s := stream{samples: make([]int16, 100_000), block: 50_000}
	forged := []byte{0xFF, 0xF8, 0x76, 0x08, 1, 0, 9}
	forged = append(forged, crc8(forged))
	for i := range 10_000 { // in the first frame
		s.samples[40_000+i] = int16(binary.BigEndian.Uint16(forged[i*2%8:]))
	}
	b := s.bytes()
	r := bytes.NewReader(b)
	h, err := ReadHeader(r, r.Size())
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	d.bits.src, d.bits.size = r, r.Size()
	if offset, _ := d.find(&h, 60_000); offset == h.Offset {
		t.Fatal("the search was not misled")
	}
	got := make([]float32, 1)
	if err := d.Read(got, r, r.Size(), h, 60_000); err != nil || got[0] != float32(s.samples[60_000])/32768 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReadHeaderFails(t *testing.T) {
	good := stream{samples: make([]int16, 100), block: 64}.bytes()
	with := func(at int, v ...byte) []byte {
		b := slices.Clone(good)
		copy(b[at:], v)
		return b
	}
	for _, c := range []struct {
		name        string
		file        []byte
		err         string
		unsupported bool
	}{
		{"good", good, "", false},
		{"empty", nil, "only 0 bytes", false},
		{"another file", with(0, 'O'), "no fLaC mark", false},
		{"not STREAMINFO", with(4, 0x84), "type 4", false},
		{"long STREAMINFO", with(7, 35), "35 bytes", false},
		{"blocks", with(10, 0, 15), "blocks of 15", false},
		{"3 bits", with(20, 0x50, 0x20), "3-bit samples", false},
		{"32 bits", with(20, 0x51, 0xF0), "32-bit samples", true},
		{"no length", with(22, 0, 0, 0, 0), "", false},
		{"no length and no frame", with(22, 0, 0, 0, 0)[:60], "no whole frame at its end", false},
		{
			"endless metadata", append(with(4, 0)[:42], bytes.Repeat([]byte{1, 0, 0, 0}, maxBlocks)...),
			"first 1000 metadata blocks", false,
		},
		{"cut metadata", append(with(4, 0)[:42], 1, 0), "truncated in the metadata", false},
		{
			"large metadata", append(with(4, 0)[:42], 0x81, 0xFF, 0xFF, 0xFF),
			"truncated in the metadata: it ends at 16777261", false,
		},
	} {
		_, err := ReadHeader(bytes.NewReader(c.file), int64(len(c.file)))
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) ||
			errors.Is(err, ErrUnsupported) != c.unsupported {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}
}

// TestEnd: the length is that up to the last whole frame, whatever the header declares and whatever comes after it.
func TestEnd(t *testing.T) {
	samples := make([]int16, 1000)
	for i := range samples {
		samples[i] = int16(i * i)
	}
	for _, variable := range []bool{false, true} {
		good := stream{samples: samples, block: 64, variable: variable}.bytes()
		none := slices.Clone(good)
		copy(none[22:], "\x00\x00\x00\x00")
		id3 := append([]byte("TAG"), make([]byte, 125)...)
		for name, c := range map[string]struct {
			b       []byte
			samples int
			want    remark.Set
			err     string
		}{
			"whole":       {good, 1000, 0, ""},
			"and a tag":   {append(slices.Clone(good), id3...), 1000, 0, ""},
			"other bytes": {append(slices.Clone(good), "other bytes"...), 1000, remark.Junk, ""},
			"cut":         {good[:len(good)-1], 960, remark.Cut, ""},
			"after a frame": {
				good[:len(stream{samples: samples[:960], block: 64, variable: variable}.bytes())], 960, remark.Cut, "",
			},
			"few frames": {
				good[:500], 0, 0, "truncated: the last whole frame ends at sample 192, the header declares 1000",
			},
			"no length":           {none, 1000, remark.Length, ""},
			"no length, a tag":    {append(slices.Clone(none), id3...), 1000, remark.Length, ""},
			"no length, cut":      {none[:len(none)-10], 960, remark.Length | remark.Cut, ""},
			"no length, few":      {none[:500], 192, remark.Length | remark.Cut, ""},
			"no length, no frame": {none[:100], 0, 0, "no whole frame"},
		} {
			r := bytes.NewReader(c.b)
			h, err := ReadHeader(r, r.Size())
			if err == nil {
				err = h.CheckEnd(r, r.Size())
			}
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s: error %v, want %q", name, err, c.err)
				}
				continue
			}
			got := make([]float32, c.samples)
			if err != nil || h.Frames != c.samples || h.Remarks != c.want ||
				new(Decoder).Read(got, r, r.Size(), h, 0) != nil {
				t.Errorf("%s, variable %v: %d samples, %v; %v", name, variable, h.Frames, h.Remarks, err)
			}
			for i, v := range got {
				if v != float32(samples[i])/32768 {
					t.Fatalf("%s: sample %d is %v", name, i, v)
				}
			}
		}
	}
}

func TestReadFails(t *testing.T) {
	good := stream{samples: make([]int16, 200), block: 64}.bytes()
	const frame = 42 + 10 + 128 // the second one starts 2 bytes of checksum later
	change := func(at int, v byte) []byte {
		b := slices.Clone(good)
		b[at] ^= v
		return b
	}
	for _, c := range []struct {
		name string
		file []byte
		err  string
	}{
		{"damaged samples", change(100, 1), "FLAC frame at sample 0, byte 42: damaged"},
		{"damaged header", change(43, 4), "at sample 0, byte 42: not a frame header"},
		{"damaged second frame", change(frame+40, 1), "FLAC frame at sample 64, byte 181: damaged"},
		{"cut in a frame", good[:100], "the file ends inside a frame"},
		{"cut after a frame", good[:181], "FLAC frame at sample 64, byte 181: the file ends before it"},
		{"a frame is missing", slices.Concat(good[:181], good[181+139:]), "its header has first sample 128"},
	} {
		r := bytes.NewReader(c.file)
		h, err := ReadHeader(r, r.Size())
		if err != nil {
			t.Fatal(err)
		}
		var d Decoder
		if err := d.Read(make([]float32, 200), r, r.Size(), h, 0); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}

	r := bytes.NewReader(good)
	h, err := ReadHeader(r, r.Size())
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	if err := d.Read(make([]float32, 10), r, r.Size(), h, 191); err == nil {
		t.Error("samples after the end were read")
	}
	if err := d.Read(make([]float32, 10), failing{}, r.Size(), h, 0); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("error %v of a file that cannot be read", err)
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, iotest.ErrTimeout }

// For any bytes, decoding ends, without a panic, and allocates no more than one block.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.flac")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint32(5000))
	}
	f.Add(stream{samples: make([]int16, 100), block: 64, variable: true}.bytes(), uint32(70))
	f.Fuzz(func(t *testing.T, b []byte, from uint32) {
		r := bytes.NewReader(b)
		h, err := ReadHeader(r, r.Size())
		if err == nil {
			err = h.CheckEnd(r, r.Size())
		}
		if err != nil {
			return
		}
		if h.Channels < 1 || h.Channels > 8 || h.Bits < 4 || h.Bits > MaxBits || h.Frames < 1 || h.Offset > r.Size() {
			t.Fatalf("header %+v of %d bytes", h, len(b))
		}
		var d Decoder
		at := int(from) % h.Frames
		d.Read(make([]float32, min(h.Frames-at, 100_000)), r, r.Size(), h, at)
		if n := cap(d.space); n > 8<<16 || cap(d.bits.buf) > chunk+maxHeader {
			t.Errorf("%d samples and %d bytes were allocated", n, cap(d.bits.buf))
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for _, file := range []string{"16-24000-2", "16-12345-1", "24-44100-3"} {
		b.Run(file, func(b *testing.B) {
			data, err := os.ReadFile("testdata/" + file + ".flac")
			if err != nil {
				b.Fatal(err)
			}
			r := bytes.NewReader(data)
			h, err := ReadHeader(r, r.Size())
			if err != nil {
				b.Fatal(err)
			}
			var d Decoder
			dst := make([]float32, h.Frames)
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Read(dst, r, r.Size(), h, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(h.Frames)/float64(h.SampleRate)*float64(b.N)/b.Elapsed().Seconds(), "audio-s/s")
		})
	}
}

// The same for the data after the checksums, which a fuzzer does not guess.
func FuzzSubframe(f *testing.F) {
	f.Add([]byte{0x00, 0x12, 0x34}, uint8(15), uint16(9)) // constant
	// verbatim, wasted bits
	f.Add([]byte{0x03, 0x40, 1, 2, 3, 4}, uint8(7), uint16(4))
	f.Add([]byte{0x14, 0, 1, 0, 2, 0x04, 0x92, 0x49, 0x24}, uint8(15), uint16(6))       // fixed, Rice code
	f.Add([]byte{0x40, 0, 1, 0x13, 0x40, 0x7C, 0x21, 0x08, 0x42}, uint8(15), uint16(5)) // linear, escape
	// a long unary number
	f.Add(append([]byte{0x10, 0x00, 0x3C}, bytes.Repeat([]byte{0}, 40)...), uint8(24), uint16(64))
	f.Fuzz(func(t *testing.T, b []byte, width uint8, n uint16) {
		r := bytes.NewReader(b)
		var d Decoder
		d.bits.src, d.bits.size = r, r.Size()
		d.bits.seek(0)
		dst := make([]int32, int(n)+1)
		if err := d.subframe(dst, 4+uint(width)%22); err == nil && d.bits.err == nil && d.bits.offset() > r.Size() {
			t.Errorf("%d of %d bytes were read", d.bits.offset(), r.Size())
		}
	})
}
