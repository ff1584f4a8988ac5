package wav

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
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

func TestReadHeader(t *testing.T) {
	pcm := chunk("fmt ", format(1, 1, 22050, 16))
	data := chunk("data", make([]byte, 10))
	cases := []struct {
		name string
		file []byte
		want Header
		err  string
	}{
		{"mono", riff(pcm, data), Header{22050, 1, 5, 44}, ""},
		{"stereo", riff(chunk("fmt ", format(1, 2, 48000, 16)), chunk("data", make([]byte, 12))), Header{48000, 2, 3, 44}, ""},
		{"extensible", riff(chunk("fmt ", extensible(1, 1, 16000, 16)), data), Header{16000, 1, 5, 68}, ""},
		{"odd chunk before", riff(chunk("LIST", make([]byte, 3)), pcm, data), Header{22050, 1, 5, 56}, ""},
		{"chunk after", riff(pcm, data, chunk("LIST", nil)), Header{22050, 1, 5, 44}, ""},
		{"no samples", riff(pcm, chunk("data", nil)), Header{22050, 1, 0, 44}, ""},
		{"empty file", nil, Header{}, "only 0 bytes"},
		{"another file", []byte("fLaC and then some bytes"), Header{}, "no RIFF/WAVE mark"},
		{"truncated", riff(pcm, data)[:50], Header{}, `"data" chunk declares 10 bytes, the file has 6`},
		{"endless stream", append(riff(pcm), []byte("data\xff\xff\xff\xff\x00\x00")...), Header{}, "declares 4294967295 bytes, the file has 2"},
		{"no data", riff(pcm), Header{}, "no data chunk in 36 bytes"},
		{"many chunks", riff(bytes.Repeat(chunk("junk", nil), maxChunks), pcm, data), Header{}, "first 1000 chunks"},
		{"data first", riff(data, pcm), Header{}, "before the fmt chunk"},
		{"half a frame", riff(pcm, chunk("data", make([]byte, 9))), Header{}, "9 bytes does not hold whole frames of 2"},
		{"short fmt", riff(chunk("fmt ", make([]byte, 14)), data), Header{}, "14 bytes, 16 are needed"},
		{"8 bits", riff(chunk("fmt ", format(1, 1, 22050, 8)), data), Header{}, "8-bit PCM"},
		{"24 bits", riff(chunk("fmt ", format(1, 1, 22050, 24)), data), Header{}, "24-bit PCM"},
		{"24 bits extensible", riff(chunk("fmt ", extensible(1, 1, 22050, 24)), data), Header{}, "24-bit PCM"},
		{"float", riff(chunk("fmt ", format(3, 1, 22050, 32)), data), Header{}, "32-bit float"},
		{"float extensible", riff(chunk("fmt ", extensible(3, 1, 22050, 32)), data), Header{}, "32-bit float"},
		{"mp3", riff(chunk("fmt ", format(0x55, 1, 22050, 16)), data), Header{}, "format 0x0055"},
		{"no channels", riff(chunk("fmt ", format(1, 0, 22050, 16)), data), Header{}, "0 channels"},
		{"rate", riff(chunk("fmt ", format(1, 1, 1, 16)), data), Header{}, "rate of 1 Hz"},
		{"frame size", riff(chunk("fmt ", append(format(1, 1, 22050, 16)[:12], 8, 0, 16, 0)), data), Header{}, "frames of 8 bytes"},
	}
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

// Whatever the bytes, an accepted header points at samples that are in the file.
func FuzzReadHeader(f *testing.F) {
	f.Add(riff(chunk("fmt ", format(1, 1, 22050, 16)), chunk("data", make([]byte, 10))))
	f.Add(riff(chunk("LIST", make([]byte, 3)), chunk("fmt ", extensible(1, 2, 48000, 16)), chunk("data", make([]byte, 8))))
	f.Add(riff(chunk("data", make([]byte, 10)), chunk("fmt ", format(3, 1, 22050, 32))))
	f.Add([]byte("RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if h.Frames < 0 || h.Channels < 1 || h.Offset < 12 || h.Offset+int64(h.Frames)*int64(h.FrameSize()) > int64(len(b)) {
			t.Errorf("%+v does not lie in %d bytes", h, len(b))
		}
	})
}
