package stagetest

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// dataFolders lists the files of data folders as the host does.
func dataFolders(paths map[string]string) (map[string]*stagepb.DataFolder, error) {
	all := map[string]*stagepb.DataFolder{}
	for name, path := range paths {
		root, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		all[name] = &stagepb.DataFolder{Path: root}
		err = filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
			hidden := strings.HasPrefix(e.Name(), ".") && at != root
			switch {
			case err != nil:
				return err
			case e.IsDir() && hidden:
				return fs.SkipDir
			case e.IsDir() || hidden:
				return nil
			}
			content, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, at)
			sum := sha256.Sum256(content)
			all[name].Files = append(all[name].Files, &stagepb.DataFile{
				Name: filepath.ToSlash(rel), Size: uint64(len(content)), Sha256: sum[:],
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(all[name].Files, func(a, b *stagepb.DataFile) int { return strings.Compare(a.Name, b.Name) })
	}
	return all, nil
}
