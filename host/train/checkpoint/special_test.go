package checkpoint

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// If a file of a checkpoint is replaced by anything else, loading ends soon with an error.
func TestLoadDoesNotHang(t *testing.T) {
	for _, name := range append([]string{manifestFile}, contents...) {
		for what, put := range map[string]func(path string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o666) },
			"folder": func(path string) error { return os.Mkdir(path, 0o777) },
			"link":   func(path string) error { return os.Symlink("/dev/zero", path) },
			"64 GiB": func(path string) error {
				return errors.Join(os.WriteFile(path, nil, 0o666), os.Truncate(path, 64<<30)) // a hole
			},
		} {
			path := save(t, NewStore(t.TempDir()), 1, 1)
			file := filepath.Join(path, name)
			if err := errors.Join(os.Remove(file), put(file)); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path)
			want := map[string]error{"64 GiB": ErrDamaged, "link": files.ErrLink}[what]
			if !errors.Is(err, cmp.Or(want, files.ErrNotRegular)) {
				t.Errorf("%s in place of %s: %v", what, name, err)
			}
		}
	}
}
