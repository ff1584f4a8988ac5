package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUnfinishedCache: a cache that a first start could not complete is taken again; a folder of others is not.
func TestUnfinishedCache(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  bool
	}{
		{[]string{"bundles/"}, true},
		{[]string{"bundles/.myxtts-nano-79f72cd49343dd6d.10abc.tmp/new/"}, true},
		{[]string{"index/.recordings-0123456789abcdef.bin.1x.xtts-partial", "bundles/"}, true},
		{[]string{"bundles/mine"}, false},
		{[]string{"bundles/", "notes.txt"}, false},
		{[]string{"bundles"}, false}, // a file
		{nil, false},
	} {
		dir := t.TempDir()
		for _, name := range c.names {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			var err error
			if name[len(name)-1] == '/' {
				err = os.MkdirAll(path, 0o777)
			} else {
				err = os.WriteFile(path, nil, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := unfinished(dir); got != c.want {
			t.Errorf("%q: %v", c.names, got)
		}
	}
}
