package catalog

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/shared/hint"
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkPrograms checks the program at a path and the program for a GPU, if it has a name. An interpreter from PATH is
// not checked.
func checkPrograms(root *os.Root, path, gpu string) error {
	var names []string
	if name, err := filepath.Rel(root.Name(), path); err == nil && filepath.IsLocal(name) {
		names = append(names, name)
	}
	if gpu != "" {
		names = append(names, gpu)
	}
	for _, name := range names {
		if err := checkProgram(root, name); err != nil {
			return err
		}
	}
	return nil
}

// checkProgram returns why the kernel could not start a program: it is for another machine, cut short, or no program at
// all, or its file system has none.
func checkProgram(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("executable %s: %s", name, cause(err))
	}
	defer f.Close()
	var system unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &system) == nil && system.Flags&unix.ST_NOEXEC != 0 {
		return hint.Errorf("copy the plugins folder to another file system, or mount this one without noexec",
			"executable %s is on a file system on which no program may be started (mounted with noexec)", name)
	}
	var magic [4]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("executable %s: %s", name, cause(err))
	}
	switch start := string(magic[:n]); {
	case start == elf.ELFMAG:
		err = checkELF(f)
	case strings.HasPrefix(start, "#!"):
		err = checkScript(f)
	default:
		err = errors.New("neither a program for Linux nor a script with #! at its beginning")
	}
	if err != nil {
		return fmt.Errorf("executable %s is %w", name, err)
	}
	return nil
}

func checkELF(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("not a whole ELF file: %w", err)
	}
	if want := machines[runtime.GOARCH]; e.Machine != want {
		return fmt.Errorf("for another machine: %s, and this one is %s", e.Machine, want)
	}
	if e.Type != elf.ET_EXEC && e.Type != elf.ET_DYN {
		return fmt.Errorf("no program, but an ELF file of type %s", e.Type)
	}
	for _, p := range e.Progs {
		if p.Off+p.Filesz > uint64(info.Size()) {
			return fmt.Errorf("cut short: it has %d bytes, and a segment of it ends at %d", info.Size(), p.Off+p.Filesz)
		}
	}
	return nil
}

// checkScript looks at the interpreter in the first line, which the kernel starts.
func checkScript(f *os.File) error {
	if _, err := f.Seek(2, io.SeekStart); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.HasSuffix(line, "\r\n") { // the kernel takes the carriage return for a part of the name
		return hint.Errorf("give its lines the ends of Unix: sed -i 's/\\r$//' "+hint.Word(f.Name()),
			"a script whose first line ends with a carriage return, as on Windows")
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return errors.New("a script with #! and no interpreter")
	}
	interpreter, err := os.Stat(words[0])
	switch {
	case err != nil:
		return hint.Errorf("install "+words[0]+", or correct the first line of the script", "a script for %s: %s",
			words[0], cause(err))
	case !interpreter.Mode().IsRegular() || interpreter.Mode()&0o111 == 0:
		return hint.Errorf("name a program in the first line of the script", "a script for %s, which is no program",
			words[0])
	}
	return nil
}
