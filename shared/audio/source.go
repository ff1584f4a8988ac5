package audio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// osFile is a file of the operating system.
type osFile struct {
	*os.File
	size int64
}

func (f osFile) Size() int64 { return f.size }

// opened opens a regular file as a source, from which read makes a File.
func opened(path string, read func(Source) (*File, error)) (*File, error) {
	// Opening a device can have side effects, and opening a pipe waits for a writer, so check the name first. The file
	// may be replaced before the open, so do not block in the open, and check the opened file again.
	info, err := os.Stat(path)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, named(path, err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		f.Close()
		return nil, named(path, err)
	}
	return read(osFile{f, info.Size()})
}

// regular returns an error for a file that is none of bytes.
func regular(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	kind := "a special file"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%s, not a regular file", kind)
}

// named returns an error of opening a path.
func named(path string, err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}
