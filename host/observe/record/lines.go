package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
)

// maxLine limits a line, in bytes. Those of a step have some 300, those of a text a few thousand.
const maxLine = 256 << 10

// lines calls take for each complete line of a file. A line that take refuses is counted, and the lines after it are
// read. problem says what could not be read; it is "" for a file that is not there.
func lines(path files.Path, take func(line []byte) error) (problem string) {
	f, err := path.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return reason(path, err)
	}
	defer f.Close()
	r, refused, first := bufio.NewReaderSize(f, maxLine), 0, ""
	for n := 1; ; n++ {
		line, err := r.ReadSlice('\n')
		switch {
		case err == io.EOF: // a run that was killed may leave a part of a line
			if refused == 0 {
				return ""
			}
			return fmt.Sprintf("%s: %s cannot be read, %s", path.Base(), units.Count(refused, "line"), first)
		case err == bufio.ErrBufferFull:
			return fmt.Sprintf("%s: line %d has more than %d bytes, and nothing after it was read", path.Base(), n,
				maxLine)
		case err != nil:
			return reason(path, err)
		}
		if err := take(line); err != nil {
			if refused++; first == "" {
				first = fmt.Sprintf("the first is line %d: %v", n, err)
			}
		}
	}
}

// reason is why a file of the folder cannot be read, without the folder's path.
func reason(path files.Path, err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	} else if link, ok := errors.AsType[*files.LinkError](err); ok {
		err = link.Err
	}
	return fmt.Sprintf("%s: %v", path.Base(), err)
}
