package audio

import (
	"bytes"
	"slices"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// marks are the first bytes of formats; '?' matches any byte. Sources: the specifications of the formats, as collected
// in file(1)'s database "audio" and in RFC 9559, RFC 3533, ISO/IEC 14496-12, 11172-3 and 13818-7.
var marks = []struct{ mark, format string }{
	{"RIFF????WAVE", "WAV"},
	{"RF64????WAVE", "WAV"},
	{"BW64????WAVE", "WAV"},
	{"fLaC", "FLAC"},
	{"RIFX????WAVE", "big-endian WAV"},
	{"riff\x2e\x91\xcf\x11????????????????wave", "Wave64"},
	{"OggS", "Ogg"},
	{"????ftyp", "MP4 (M4A, AAC or ALAC)"},
	{"FORM????AIFF", "AIFF"},
	{"FORM????AIFC", "AIFF"},
	{"NIST_1A\n", "NIST SPHERE"},
	{"caff", "Core Audio"},
	{".snd", "AU"},
	{"#!AMR", "AMR"},
	{"wvpk", "WavPack"},
	{"MAC ", "Monkey's Audio"},
	{"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA"},
	{"\x1a\x45\xdf\xa3", "Matroska or WebM"},
}

// codecs are the first bytes of the first packet of an Ogg stream (RFC 5334, section 10).
var codecs = []struct{ mark, codec string }{
	{"Speex   ", "Speex"},
	{"fishead\x00", "a stream of several parts"},
	{"\x80theora", "film (Theora)"},
}

// flacInOgg begins the first packet of FLAC in Ogg (xiph.org/flac/ogg_mapping.html); versions and the number of headers
// follow, and then a FLAC file.
const flacInOgg = "\x7fFLAC"

// codecOf returns the name of the codec of an Ogg stream that is not read.
func codecOf(packet []byte) string {
	for _, c := range codecs {
		if matches(packet, c.mark) {
			return c.codec
		}
	}
	return "an unknown codec"
}

// pointer is the start of the text file that replaces a Git LFS file that was not downloaded.
const pointer = "version https://git-lfs"

// formatOf returns the name of the format that a file's first bytes indicate, or "".
func formatOf(head []byte) string {
	for _, m := range marks {
		if matches(head, m.mark) {
			return m.format
		}
	}
	// MPEG audio has no mark, only frames that start with 11 bits of 1. The next two bits are the version (01 is
	// invalid), then two bits for the layer (01 is 3, 10 is 2), which is 00 in AAC's ADTS frames. Layer 1 is not used,
	// and would be the byte order mark of UTF-16.
	if len(head) > 1 && head[0] == 0xFF && head[1]&0xE0 == 0xE0 {
		switch {
		case head[1]&0xF6 == 0xF0:
			return "AAC"
		case head[1]&0x18 != 0x08 && (head[1]&0x06 == 2 || head[1]&0x06 == 4):
			return "MP3"
		}
	}
	return ""
}

func matches(head []byte, mark string) bool {
	if len(head) < len(mark) {
		return false
	}
	for i := range len(mark) {
		if mark[i] != '?' && mark[i] != head[i] {
			return false
		}
	}
	return true
}

// refuse returns an error that names the format of the file.
func refuse(head []byte, format, path string, tagged bool) error {
	switch {
	case len(head) == 0 && tagged:
		return remark.Lost("the file has only a tag, and no audio")
	case len(head) == 0:
		return remark.Lost("the file is empty")
	case bytes.HasPrefix(head, []byte(pointer)):
		return hint.Errorf("fetch the recordings with: git lfs pull", "the file is a pointer of Git LFS, not audio")
	case torn(head):
		return remark.Lost("truncated: %d bytes", len(head))
	case format == "":
		return remark.Lost("the file is no audio of a known format")
	}
	return hint.Errorf(Convert(path), "%s is not read", format)
}

// supported are the formats that have a mark of more than three bytes and are read.
var supported = []string{"WAV", "Wave64", "FLAC", "Ogg"}

// torn reports whether a file ends within the mark of a supported format. A single byte may be anything.
func torn(head []byte) bool {
	for _, m := range marks {
		n := len(head)
		if slices.Contains(supported, m.format) && n > 1 && n < len(m.mark) && matches(head, m.mark[:n]) {
			return true
		}
	}
	return false
}
