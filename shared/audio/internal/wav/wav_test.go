package wav

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

// chunk frames a body as RIFF does.
func chunk(id string, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(body)))
	b = append(b, body...)
	if len(body)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

func format(code, channels, rate, bits int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(code))
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*channels*bits/8))
	b = le.AppendUint16(b, uint16(channels*bits/8))
	return le.AppendUint16(b, uint16(bits))
}

func extensible(code, channels, rate, bits int) []byte {
	b := format(formatExtensible, channels, rate, bits)
	b = append(b, 22, 0, byte(bits), 0, 0, 0, 0, 0)
	b = append(b, byte(code), byte(code>>8))
	return append(b, 0, 0, 0, 0, 16, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71)
}

func riff(chunks ...[]byte) []byte {
	body := append([]byte("WAVE"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// validBits returns an extensible header with a number of valid bits.
func validBits(valid, bits int) []byte {
	b := extensible(1, 1, 22050, bits)
	b[18] = byte(valid)
	return b
}

// format20 has samples of 20 bits in 3 bytes.
func format20(channels int) []byte {
	b := format(1, channels, 22050, 24)
	b[14] = 20
	return b
}

// large returns an RF64 file of 10 bytes of samples that declares another size.
func large(mark string, format []byte, size uint64) []byte {
	ds64 := binary.LittleEndian.AppendUint64(make([]byte, 8), size)
	b := riff(chunk("ds64", append(ds64, make([]byte, 12)...)), format)
	copy(b, mark)
	return append(b, "data\xff\xff\xff\xff1234567890"...)
}

// wave64 returns a file of 6 bytes of samples that declares a size of its chunk.
func wave64(size uint64) []byte {
	le := binary.LittleEndian
	b := append(slices.Clone(riff64), make([]byte, 8)...)
	b = append(append(b, "wave"...), chunk64...)
	b = append(append(b, "fmt "...), chunk64...)
	b = append(le.AppendUint64(b, 24+16), format(1, 1, 22050, 16)...)
	b = append(append(b, "data"...), chunk64...)
	return append(le.AppendUint64(b, size), "123456"...)
}

func TestReadHeader(t *testing.T) {
	pcm := chunk("fmt ", format(1, 1, 22050, 16))
	data := chunk("data", make([]byte, 10))
	check(t, []headerCase{
		{"mono", riff(pcm, data), Header{22050, 1, 16, PCM, 5, 44, 0}, ""},
		{"stereo", riff(chunk("fmt ", format(1, 2, 48000, 16)), chunk("data", make([]byte, 12))),
			Header{48000, 2, 16, PCM, 3, 44, 0}, ""},
		{"extensible", riff(chunk("fmt ", extensible(1, 1, 16000, 16)), data), Header{16000, 1, 16, PCM, 5, 68, 0}, ""},
		{"odd chunk before", riff(chunk("LIST", make([]byte, 3)), pcm, data), Header{22050, 1, 16, PCM, 5, 56, 0}, ""},
		{"chunk after", riff(pcm, data, chunk("LIST", nil)), Header{22050, 1, 16, PCM, 5, 44, 0}, ""},
		{"no samples", riff(pcm, chunk("data", nil)), Header{22050, 1, 16, PCM, 0, 44, 0}, ""},
		{"empty file", nil, Header{}, "only 0 bytes"},
		{"another file", []byte("fLaC and then some bytes"), Header{}, "no RIFF/WAVE mark"},
		{"truncated", riff(pcm, data)[:48], Header{}, `"data" chunk declares 10 bytes, but the file has 4`},
		{"no data", riff(pcm), Header{}, "no data chunk in 36 bytes"},
		{"many chunks", riff(bytes.Repeat(chunk("junk", nil), maxChunks), pcm, data), Header{}, "first 1000 chunks"},
		{"data first", riff(data, pcm), Header{}, "before the fmt chunk"},
		{"half a frame", riff(pcm, chunk("data", make([]byte, 9))), Header{22050, 1, 16, PCM, 4, 44, remark.Cut}, ""},
		{"short fmt", riff(chunk("fmt ", make([]byte, 14)), data), Header{}, "14 bytes, 16 are needed"},
		{"8 bits", riff(chunk("fmt ", format(1, 1, 22050, 8)), data), Header{22050, 1, 8, PCM, 10, 44, 0}, ""},
		{"20 bits", riff(chunk("fmt ", format20(2)), chunk("data", make([]byte, 12))),
			Header{22050, 2, 20, PCM, 2, 44, 0}, ""},
		{"24 bits", riff(chunk("fmt ", format(1, 1, 22050, 24)), chunk("data", make([]byte, 9))),
			Header{22050, 1, 24, PCM, 3, 44, 0}, ""},
		{"24 bits extensible", riff(chunk("fmt ", extensible(1, 6, 22050, 24)), chunk("data", make([]byte, 36))),
			Header{22050, 6, 24, PCM, 2, 68, 0}, ""},
		{"float", riff(chunk("fmt ", format(3, 1, 22050, 32)), chunk("data", make([]byte, 8))),
			Header{22050, 1, 32, Float, 2, 44, 0}, ""},
		{"float extensible", riff(chunk("fmt ", extensible(3, 1, 22050, 64)), chunk("data", make([]byte, 8))),
			Header{22050, 1, 64, Float, 1, 68, 0}, ""},
		{"48 bits", riff(chunk("fmt ", format(1, 1, 22050, 48)), data), Header{}, "48-bit PCM"},
		{"half float", riff(chunk("fmt ", format(3, 1, 22050, 16)), data), Header{}, "16-bit float"},
		{"mp3", riff(chunk("fmt ", format(0x55, 1, 22050, 16)), data), Header{}, "MP3 samples"},
		{"mu-law", riff(chunk("fmt ", format(7, 1, 8000, 8)), data), Header{8000, 1, 8, MuLaw, 10, 44, 0}, ""},
		{"A-law extensible", riff(chunk("fmt ", extensible(6, 2, 8000, 8)), data), Header{8000, 2, 8, ALaw, 5, 68, 0},
			""},
		{"A-law of 16 bits", riff(chunk("fmt ", format(6, 1, 8000, 16)), data), Header{},
			"16-bit samples of A-law or mu-law"},
		{"ADPCM", riff(chunk("fmt ", format(0x11, 1, 8000, 4)), data), Header{}, "IMA ADPCM samples"},
		{"another code", riff(chunk("fmt ", format(0x1234, 1, 8000, 8)), data), Header{}, "format 0x1234"},
		{"short extensible", riff(chunk("fmt ", extensible(1, 1, 8000, 16)[:38]), data), Header{},
			"38 bytes, 40 are needed"},
		{"another GUID", riff(chunk("fmt ", append(extensible(1, 1, 8000, 16)[:39], 0)), data), Header{},
			"sub-format 0100000000001000800000aa00389b00"},
		{"valid bits", riff(chunk("fmt ", validBits(24, 16)), data), Header{}, "24 valid bits in samples of 16"},
		{"fewer valid bits", riff(chunk("fmt ", validBits(20, 24)), chunk("data", make([]byte, 9))),
			Header{22050, 1, 24, PCM, 3, 68, 0}, ""},
		{"RF64", large("RF64", pcm, 10), Header{22050, 1, 16, PCM, 5, 80, 0}, ""},
		{"BW64", large("BW64", pcm, 10), Header{22050, 1, 16, PCM, 5, 80, 0}, ""},
		{"RF64 to a pipe", large("RF64", pcm, 1<<40), Header{22050, 1, 16, PCM, 5, 80, remark.Length}, ""},
		{"RF64 negative", large("RF64", pcm, 1<<63), Header{}, "more than 63 bits"},
		{"short ds64", riff(chunk("ds64", make([]byte, 8)), pcm, data), Header{}, "ds64 chunk of 8 bytes"},
		{"no channels", riff(chunk("fmt ", format(1, 0, 22050, 16)), data), Header{}, "0 channels"},
		{"many channels", riff(chunk("fmt ", format(1, MaxChannels+1, 22050, 8)), data), Header{}, "1025 channels"},
		{"frame size", riff(chunk("fmt ", append(format(1, 1, 22050, 16)[:12], 8, 0, 16, 0)), data), Header{},
			"frames of 8 bytes"},
	})
}

// TestDeclaredSizes: where the declared size of the samples cannot be true, they extend to the end of the file or to
// the chunks there.
func TestDeclaredSizes(t *testing.T) {
	pcm := chunk("fmt ", format(1, 1, 22050, 16))
	data := chunk("data", make([]byte, 10))
	check(t, []headerCase{
		{"its end is missing", riff(pcm, data)[:51], Header{22050, 1, 16, PCM, 3, 44, remark.Cut}, ""},
		{"ffmpeg to a pipe", append(riff(pcm), "data\xff\xff\xff\xff12345"...),
			Header{22050, 1, 16, PCM, 2, 44, remark.Length | remark.Cut}, ""},
		{"sox to a pipe", append(riff(pcm), "data\x00\xf0\xff\x7f123456"...),
			Header{22050, 1, 16, PCM, 3, 44, remark.Length}, ""},
		{"arecord", append(riff(pcm), "data\x00\x00\x00\x80123456"...), Header{22050, 1, 16, PCM, 3, 44, remark.Length},
			""},
		{"size 0", append(riff(pcm), "data\x00\x00\x00\x00123456"...), Header{22050, 1, 16, PCM, 3, 44, remark.Length},
			""},
		{"size 0 and a chunk", append(riff(pcm), "data\x00\x00\x00\x00123456LIST\x02\x00\x00\x00ab"...),
			Header{22050, 1, 16, PCM, 3, 44, remark.Length}, ""},
		{"size 0 and only a chunk", riff(pcm, chunk("data", nil), chunk("LIST", make([]byte, 7))),
			Header{22050, 1, 16, PCM, 0, 44, 0}, ""},
		{"no size and two chunks",
			append(riff(pcm), "data\xff\xff\xff\xff123456LIST\x03\x00\x00\x00abc\x00id3 \x01\x00\x00\x00a"...),
			Header{22050, 1, 16, PCM, 3, 44, remark.Length}, ""},
		{"a chunk within the size", append(riff(pcm), "data\x0a\x00\x00\x00123456LIST\x04\x00\x00\x00abcd"...),
			Header{22050, 1, 16, PCM, 3, 44, remark.Length}, ""},
		{"other bytes after it", append(riff(pcm, data), "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a"...),
			Header{22050, 1, 16, PCM, 5, 44, remark.Junk}, ""},
		{"no padding", append(riff(), slices.Concat([]byte("LIST\x03\x00\x00\x00abc"), pcm, data)...),
			Header{22050, 1, 16, PCM, 5, 55, 0}, ""},
		{"no padding after it",
			append(riff(chunk("fmt ", format(1, 1, 22050, 8))), "data\x03\x00\x00\x00123LIST\x02\x00\x00\x00ab"...),
			Header{22050, 1, 8, PCM, 3, 44, 0}, ""},
		{"frames of 1 byte",
			riff(chunk("fmt ", append(format(1, 2, 22050, 16)[:12], 1, 0, 16, 0)), chunk("data", make([]byte, 12))),
			Header{22050, 2, 16, PCM, 3, 44, remark.Align}, ""},
		{"Wave64", wave64(24 + 6), Header{22050, 1, 16, PCM, 3, 104, 0}, ""},
		{"Wave64 to a pipe", wave64(1<<63 - 1), Header{22050, 1, 16, PCM, 3, 104, remark.Length}, ""},
	})
}

type headerCase struct {
	name string
	file []byte
	want Header
	err  string
}

func check(t *testing.T, cases []headerCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadHeader(bytes.NewReader(c.file), int64(len(c.file)))
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// For any bytes, an accepted header points to samples that are in the file and can be converted.
func FuzzReadHeader(f *testing.F) {
	f.Add(riff(chunk("fmt ", format(1, 1, 22050, 16)), chunk("data", make([]byte, 10))))
	f.Add(riff(chunk("LIST", make([]byte, 3)), chunk("fmt ", extensible(1, 2, 48000, 16)),
		chunk("data", make([]byte, 8))))
	f.Add(riff(chunk("fmt ", format(1, 1, 22050, 8)), chunk("data", make([]byte, 3))))
	f.Add(riff(chunk("fmt ", format(7, 2, 8000, 8)), chunk("data", []byte{0, 128, 85, 255})))
	f.Add(riff(chunk("fmt ", format20(2)), chunk("data", make([]byte, 12))))
	f.Add(riff(chunk("fmt ", validBits(20, 32)), chunk("data", make([]byte, 8))))
	f.Add(riff(chunk("fmt ", format(3, 1, 22050, 32)), chunk("data", []byte{0, 0, 0xC0, 0x7F})))
	f.Add(riff(chunk("fmt ", extensible(3, 2, 22050, 64)), chunk("data", make([]byte, 16))))
	f.Add(large("RF64", chunk("fmt ", format(1, 1, 22050, 16)), 10))
	f.Add(riff(chunk("data", make([]byte, 10)), chunk("fmt ", format(3, 1, 22050, 32))))
	f.Add(wave64(30))
	f.Add(append(riff(chunk("fmt ", format(1, 1, 22050, 16))), "data\xff\xff\xff\xff123456LIST\x02\x00\x00\x00ab"...))
	f.Add([]byte("RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		n := int64(h.Frames) * int64(h.FrameSize())
		if h.Frames < 0 || h.Channels < 1 || h.Offset < 12 || h.Offset+n > int64(len(b)) {
			t.Fatalf("%+v does not lie in %d bytes", h, len(b))
		}
		samples := make([]float32, h.Frames)
		if err := h.Mono(samples, b[h.Offset:][:n]); err != nil {
			return
		}
		limit := float32(1)
		if h.Coding == Float {
			limit = maxFloat
		}
		for i, v := range samples {
			if !(v >= -limit && v <= limit) {
				t.Fatalf("%+v: sample %d is %v", h, i, v)
			}
		}
	})
}
