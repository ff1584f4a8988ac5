// Package plain reads text as editors and spreadsheets write it: it takes a byte order mark away, and refuses text that
// is not in UTF-8 with the command that converts it.
//
//	if err := plain.Check(path, data); err != nil { // "it is in UTF-16, not in UTF-8"
//		return fmt.Errorf("%s: %w", path, err)
//	}
//	text := plain.Trim(data)
package plain

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Trim returns a text without its byte order mark.
func Trim(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\uFEFF")) }

// head is the number of bytes by which a text in UTF-16 or UTF-32 is recognized.
const head = 256

// CheckWide refuses text in UTF-16 or UTF-32 by its first bytes; of the others it reads nothing. The command is for the
// file of that path, or for the standard input if it is "". The caller adds the name to the error.
func CheckWide(path string, text []byte) error {
	encoding := wide(text[:min(len(text), head)])
	if encoding == "" {
		return nil
	}
	return hint.Errorf("convert it: "+Convert(encoding, path), "it is in %s, not in UTF-8", encoding)
}

// Check refuses text that is not in UTF-8, and names the first byte that is not.
func Check(path string, text []byte) error {
	if err := CheckWide(path, text); err != nil || utf8.Valid(text) {
		return err
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	line := 1 + bytes.Count(text[:at], []byte("\n"))
	return hint.Errorf(
		"convert it; if it is in Windows-1252: "+Convert("WINDOWS-1252", path)+" (iconv -l lists other encodings)",
		"it is not in UTF-8: byte %d (0x%02x) in line %d", at+1, text[at], line)
}

// wide returns the encoding of a text whose characters have several bytes each, by its byte order mark or by the zero
// bytes of its ASCII characters; "" for any other text.
func wide(text []byte) string {
	var zeros [4]int // by the place in a group of four bytes
	for i, c := range text {
		if c == 0 {
			zeros[i%4]++
		}
	}
	even, odd := zeros[0]+zeros[2], zeros[1]+zeros[3]
	most, group := len(text)/4, len(text)/4*3/4 // three of four characters
	switch {
	case bytes.HasPrefix(text, []byte{0xFF, 0xFE, 0, 0}), bytes.HasPrefix(text, []byte{0, 0, 0xFE, 0xFF}):
		return "UTF-32"
	case bytes.HasPrefix(text, []byte{0xFF, 0xFE}), bytes.HasPrefix(text, []byte{0xFE, 0xFF}):
		return "UTF-16"
	case len(text) >= 4 && min(zeros[2], zeros[3]) >= max(group, 1) && zeros[0] == 0:
		return "UTF-32LE"
	case len(text) >= 4 && min(zeros[0], zeros[1]) >= max(group, 1) && zeros[3] == 0:
		return "UTF-32BE"
	case odd > most && even == 0:
		return "UTF-16LE"
	case even > most && odd == 0:
		return "UTF-16BE"
	}
	return ""
}

// Convert returns the command that converts a file to UTF-8, or a part of a pipe for the standard input.
func Convert(encoding, path string) string {
	convert := fmt.Sprintf("iconv -f %s -t UTF-8", encoding)
	if path == "" {
		return convert
	}
	file, converted := hint.Word(path), hint.Word(path+".utf8")
	return fmt.Sprintf("%s %s >%s && mv %s %s", convert, file, converted, converted, file)
}
