package dataset

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// checkEncoding refuses a list in UTF-16 or UTF-32, as some spreadsheets export it, by its first bytes.
func checkEncoding(path string, list io.ReaderAt) error {
	head := make([]byte, 256)
	n, err := list.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if encoding := wideEncoding(head[:n]); encoding != "" {
		return hint.Errorf("convert it: "+convertList(encoding, path), "%s: the list is in %s, not in UTF-8", filepath.Base(path), encoding)
	}
	return nil
}

// wideEncoding returns the encoding of a text whose characters have several bytes each, by its byte order mark or by the
// zero bytes of its ASCII characters; "" for any other text.
func wideEncoding(head []byte) string {
	even, odd := 0, 0
	for i, c := range head {
		if c == 0 && i%2 == 0 {
			even++
		} else if c == 0 {
			odd++
		}
	}
	switch most := len(head) / 4; {
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE, 0, 0}), bytes.HasPrefix(head, []byte{0, 0, 0xFE, 0xFF}):
		return "UTF-32"
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return "UTF-16"
	case odd > most && even == 0:
		return "UTF-16LE"
	case even > most && odd == 0:
		return "UTF-16BE"
	}
	return ""
}

// convertList returns the command that converts a list to UTF-8.
func convertList(encoding, path string) string {
	file := hint.Word(path)
	converted := hint.Word(path + ".utf8")
	return fmt.Sprintf("iconv -f %s -t UTF-8 %s >%s && mv %s %s", encoding, file, converted, converted, file)
}
