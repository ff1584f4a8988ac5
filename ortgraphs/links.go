package ortgraphs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// absent says why a file that a folder should have cannot be found, and how to get it. Programs that share large files
// keep them elsewhere: the folder has links to them, or small files in their places, until they are fetched.
func absent(dir, name string) (reason, advice string) {
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path + ".dvc"); err == nil {
		return "missing, but " + name + ".dvc is there: DVC has not fetched it", fetchDVC(dir)
	}
	target, err := os.Readlink(path)
	if err != nil {
		return "", ""
	}
	reason = "a link to " + target + ", which is not there"
	switch slashed := "/" + filepath.ToSlash(target); {
	case strings.Contains(slashed, "/.git/annex/") || strings.Contains(slashed, "/annex/objects/"):
		return reason, fetchAnnex(dir)
	case strings.Contains(slashed, "/.dvc/") || strings.Contains(slashed, "/files/md5/"):
		return reason, fetchDVC(dir)
	case strings.Contains(slashed, "/blobs/"):
		return reason, fetchHub(dir)
	}
	return reason, "bring back that file, or copy the bundle again with cp -rL, which copies what links lead to"
}

func fetchDVC(dir string) string   { return "fetch it: cd " + hint.Word(dir) + " && dvc pull" }
func fetchAnnex(dir string) string { return "fetch it: cd " + hint.Word(dir) + " && git annex get ." }

// fetchHub names the command for a snapshot in the cache of huggingface_hub:
// .../models--OWNER--NAME/snapshots/REVISION.
func fetchHub(dir string) string {
	parts := strings.Split(filepath.ToSlash(dir), "/")
	for i, part := range parts {
		repository, ok := strings.CutPrefix(part, "models--")
		if ok && len(parts) > i+2 && parts[i+1] == "snapshots" {
			return "download it again: hf download " + hint.Path(strings.Replace(repository, "--", "/", 1)) +
				" --revision " + hint.Path(parts[i+2])
		}
	}
	return "download the bundle again"
}

// pointers begin files that stand in the place of a file that is not fetched.
var pointers = []struct {
	start, reason string
	fetch         func(dir string) string
}{
	{"version https://git-lfs.github.com/spec/", "a pointer of Git LFS, not the file", func(dir string) string {
		return "fetch it: cd " + hint.Word(dir) + " && git lfs pull"
	}},
	{"/annex/objects/", "a pointer of git-annex, not the file", fetchAnnex},
}

// pointer says that a file is only a pointer, and how to get the file, or "".
func pointer(dir string, file io.ReaderAt) (reason, advice string) {
	start := make([]byte, 64)
	n, err := file.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", ""
	}
	for _, p := range pointers {
		if bytes.HasPrefix(start[:n], []byte(p.start)) {
			return p.reason, p.fetch(dir)
		}
	}
	return "", ""
}

// noContent reports whether a bundle may have a file that it does not list: what programs that share folders leave
// there, and pages for people. The host reads none of them.
func noContent(e fs.DirEntry) bool {
	name := e.Name()
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".dvc") ||
		strings.HasSuffix(strings.ToLower(name), ".md") || name == "LICENSE" || name == "NOTICE"
}
