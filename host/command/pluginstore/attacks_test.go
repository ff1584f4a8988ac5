package pluginstore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/release"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// forged is an archive that a test changes before it is written.
type forged struct {
	index   map[string]any
	entries []tar.Header // after index.json
	content map[string]string
	end     string // after the last entry, in the tar file
	after   string // the compressed data
	cut     int    // bytes from the end
}

// entry is a plain file.
func entry(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: "plugin/" + name, Mode: 0o644}
}

// listed is a file of the index.
func listed(name, content string) map[string]any {
	return map[string]any{"name": name, "size": len(content), "sha256": sumOf(content)}
}

// forge returns an archive that can be installed, to be changed.
func forge() *forged {
	f := &forged{content: map[string]string{"plugin.json": scriptJSON("echo", ""), "run": "exit 1\n"}}
	f.content["plugin.sum"] = fmt.Sprintf("%s  plugin.json\n%s  run\n", sumOf(f.content["plugin.json"]),
		sumOf(f.content["run"]))
	files := []any{}
	for _, name := range []string{"plugin.json", "plugin.sum", "run"} {
		files = append(files, listed(name, f.content[name]))
		f.entries = append(f.entries, entry(name))
	}
	f.index = map[string]any{
		"format": 1, "name": "echo", "version": "1.0.0", "platforms": []string{"any"},
		"asks": map[string]any{"gpu": "none", "network": false, "folders": []string{}}, "files": files,
	}
	return f
}

// add puts a file into the archive and its index.
func (f *forged) add(name, content string) {
	f.entries, f.content[name] = append(f.entries, entry(name)), content
	f.list(listed(name, content))
}

// list puts a file into the index, and keeps its order.
func (f *forged) list(file map[string]any) {
	files := append(f.index["files"].([]any), any(file))
	slices.SortStableFunc(files, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
	})
	f.index["files"] = files
	slices.SortStableFunc(f.entries, func(a, b tar.Header) int { return strings.Compare(a.Name, b.Name) })
}

// set changes a file, with the sums of plugin.sum and the index.
func (f *forged) set(name, content string) {
	old := f.content[name]
	f.content[name] = content
	for _, file := range f.index["files"].([]any) {
		if file := file.(map[string]any); file["name"] == name {
			file["size"], file["sha256"] = len(content), sumOf(content)
		}
	}
	if name != "plugin.sum" {
		f.set("plugin.sum", strings.ReplaceAll(f.content["plugin.sum"], sumOf(old), sumOf(content)))
	}
}

// bytes returns the archive.
func (f *forged) bytes(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	put := func(h tar.Header, content string) {
		if h.Size == 0 && h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		err := w.WriteHeader(&h)
		if err == nil && h.Typeflag == tar.TypeReg {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(f.index)
	if err != nil {
		t.Fatal(err)
	}
	put(tar.Header{Typeflag: tar.TypeReg, Name: "index.json", Mode: 0o644}, string(text))
	for _, h := range f.entries {
		put(h, f.content[strings.TrimPrefix(h.Name, "plugin/")])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(zipped, f.end)
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	out.WriteString(f.after)
	return out.Bytes()[:out.Len()-f.cut]
}

// odd adds an entry of a kind that no archive may have.
func odd(kind byte, name, target string) func(*forged) {
	return func(f *forged) {
		f.entries = append([]tar.Header{{Typeflag: kind, Name: name, Linkname: target, Mode: 0o644}}, f.entries...)
	}
}

// attacks are archives that are refused, and what the refusal says.
var attacks = []struct {
	name   string
	change func(*forged)
	want   string
}{
	{"an absolute path", func(f *forged) { f.add("/tmp/evil", "x") }, `the name "/tmp/evil" is an absolute path`},
	{"a path that leads out", func(f *forged) { f.add("../evil", "x") }, `the name "../evil" leads out of the folder`},
	{"a path that leads out later", func(f *forged) { f.add("run.d/../../evil", "x") }, "leads out of the folder"},
	{"an absolute path behind the index", func(f *forged) {
		f.entries = append(f.entries, tar.Header{Typeflag: tar.TypeReg, Name: "/etc/evil", Mode: 0o644})
	}, `"/etc/evil" is not below plugin/`},
	{"a path that leads out behind the index", func(f *forged) {
		f.entries = append(f.entries, entry("../../evil"))
	}, `the name "../../evil" leads out of the folder`},
	{"a backslash", func(f *forged) { f.add(`..\evil`, "x") }, "has a backslash"},
	{"an empty part", func(f *forged) { f.add("a//b", "x") }, "has an empty part"},
	{"a symbolic link", odd(tar.TypeSymlink, "plugin/run", "/etc/passwd"), `"plugin/run" is a symbolic link`},
	{"a hard link", odd(tar.TypeLink, "plugin/run", "/etc/passwd"), `"plugin/run" is a hard link`},
	{"a device", odd(tar.TypeChar, "plugin/run", ""), `"plugin/run" is a device`},
	{"a disk", odd(tar.TypeBlock, "plugin/run", ""), `"plugin/run" is a device`},
	{"a pipe", odd(tar.TypeFifo, "plugin/run", ""), `"plugin/run" is a named pipe`},
	{"a folder", odd(tar.TypeDir, "plugin/sub/", ""), `"plugin/sub/" is a folder of its own`},
	{"a setuid bit", func(f *forged) { f.entries[2].Mode = 0o4755 }, `"plugin/run" has the mode 4755`},
	{"a file that everyone may write", func(f *forged) { f.entries[2].Mode = 0o666 }, `has the mode 0666`},
	{"a program that the index does not call one", func(f *forged) { f.entries[2].Mode = 0o755 }, "has the mode 0755"},
	{"an attribute", func(f *forged) {
		f.entries[2].PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "x"}
	}, `has an attribute, "SCHILY.xattr.security.capability"`},
	{"an attribute for all", func(f *forged) {
		all := tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "evil"}}
		f.entries = append([]tar.Header{all}, f.entries...)
	}, "is of type 'g'"},
	{"a file twice", func(f *forged) { f.entries = append(f.entries, entry("run")) },
		`"run" is in it twice, or out of order`},
	{"a file twice in the index", func(f *forged) { f.add("run", "x") }, `"run" is listed twice`},
	{"names that differ by case", func(f *forged) { f.add("Run", "x") }, `are the same name on some systems`},
	{"folders that differ by case", func(f *forged) { f.add("Lib/a", "x"); f.add("lib/b", "x") },
		`"Lib/" and "lib/" are the same name on some systems`},
	{"a folder that is a file", func(f *forged) { f.add("run/sub", "x") }, "are the same name on some systems"},
	{"a control character", func(f *forged) { f.add("a\x1b[2Jb", "x") }, "has characters that cannot be seen"},
	{"a line feed", func(f *forged) { f.add("a\nb", "x") }, "has characters that cannot be seen"},
	{"a character that turns text around", func(f *forged) { f.add("a\u202eb", "x") },
		"has characters that cannot be seen"},
	{"the record of an installation", func(f *forged) { f.add(".installed/archive.tar.gz", "x") }, "begins with a dot"},
	{"an environment that nobody checks", func(f *forged) { f.add(".venv/bin/python", "x") }, "begins with a dot"},
	{"compiled modules that nobody checks", func(f *forged) { f.add("__pycache__/run.pyc", "x") },
		"Python or npm makes it"},
	{"a long name", func(f *forged) { f.add(strings.Repeat("x/", 300)+"x", "x") }, "a name of 601 bytes"},
	{"too many files", func(f *forged) {
		for i := range 10001 {
			f.index["files"] = append(f.index["files"].([]any), listed(fmt.Sprintf("x%05d", i), ""))
		}
	}, "10004 files, more than the 10000"},
	{"a large file", func(f *forged) { f.list(map[string]any{"name": "big", "size": 3 << 30, "sha256": sumOf("")}) },
		`"big" has 3.0 GiB, more than the 2.0 GiB`},
	{"a size below 0", func(f *forged) { f.list(map[string]any{"name": "big", "size": -1, "sha256": sumOf("")}) },
		`"big" has`},
	{"a bomb that says so", func(f *forged) { f.add("zeros", strings.Repeat("\x00", 80<<20)) },
		"it unpacks to 80 MiB, more than the 64 MiB"},
	{"a bomb that does not", func(f *forged) {
		f.list(listed("zeros", "x"))
		f.entries, f.content["zeros"] = append(f.entries, entry("zeros")), strings.Repeat("\x00", 80<<20)
	}, `"zeros" has 83886080 bytes, and 1 in index.json`},
	{"a bomb behind the end", func(f *forged) { f.end = strings.Repeat("\x00", 80<<20) },
		"further bytes follow after its last file"},
	{"bytes behind the end of the files", func(f *forged) { f.end = "more" },
		"further bytes follow after its last file"},
	{"bytes behind the end", func(f *forged) { f.after = "more" }, "further bytes follow after its end"},
	{"a second archive behind the end", func(f *forged) { f.after = gzipped("more") },
		"further bytes follow after its end"},
	{"an archive that is cut", func(f *forged) { f.cut = 100 }, "it is cut short"},
	{"an archive without its checksum", func(f *forged) { f.cut = 8 }, "it is cut short"},
	{"a file with another content", func(f *forged) { f.content["run"] = "exit 2\n" }, `"run" has the SHA-256`},
	{"a file of another size", func(f *forged) { f.content["run"] += "x" }, `"run" has 8 bytes, and 7 in index.json`},
	{"a file that is missing", func(f *forged) { f.entries = f.entries[:2] },
		`"run" is in index.json, and not in the archive`},
	{"a file that is not listed", func(f *forged) { f.entries = append(f.entries, entry("x")) },
		`"x" is in it, and not in index.json`},
	{"an index with more than one", func(f *forged) { f.index["hook"] = "rm -r /" }, `unknown field "hook"`},
	{"a format of the future", func(f *forged) { f.index["format"] = 2 }, "format 2, and this host reads 1"},
	{"an index that hides what is asked for", func(f *forged) {
		f.set("plugin.json", scriptJSON("echo", `"network": true,`))
	}, "index.json: asks is not what plugin.json says"},
	{"an index of another version", func(f *forged) { f.index["version"] = "2.0.0" },
		"index.json: version is not what plugin.json says"},
	{"a manifest with another name", func(f *forged) { f.set("plugin.json", scriptJSON("other", "")) },
		`index.json is of plugin "echo", and plugin.json of "other"`},
	{"a name that leads out", func(f *forged) {
		f.index["name"] = "../echo"
		f.set("plugin.json", scriptJSON("../echo", ""))
	}, "plugin.json: id: "},
	{"no manifest", func(f *forged) {
		f.entries, f.index["files"] = f.entries[1:], f.index["files"].([]any)[1:]
	}, "it has no plugin.json"},
	{"no checksums", func(f *forged) {
		f.entries, f.index["files"] = slices.Delete(f.entries, 1, 2), slices.Delete(f.index["files"].([]any), 1, 2)
	}, "it has no plugin.sum"},
	{"checksums of other files", func(f *forged) {
		f.set("plugin.sum", sumOf(f.content["plugin.json"])+"  plugin.json\n"+sumOf("x")+"  run\n")
	}, "plugin echo is modified"},
	{"a file without a checksum", func(f *forged) { f.add("helper.py", "pass\n") },
		`"helper.py" is in it, and plugin.sum does not list it`},
	{"checksums that are none", func(f *forged) { f.set("plugin.sum", "run\n") }, "not a line of sha256sum"},
	{"another platform", func(f *forged) {
		f.set("plugin.json", strings.Replace(scriptJSON("echo", ""), `"argv": ["sh", "run"]`,
			`"executable": {"plan9_mips": "run"}`, 1))
		f.index["platforms"], f.entries[2].Mode = []string{"plan9_mips"}, 0o755
		f.index["files"].([]any)[2].(map[string]any)["executable"] = true
	}, "it has programs for plan9_mips, and this machine is"},
	{"a platform without its program", func(f *forged) {
		f.set("plugin.json", strings.Replace(scriptJSON("echo", ""), `"argv": ["sh", "run"]`,
			`"executable": {"linux_amd64": "program"}`, 1))
		f.index["platforms"] = []string{"linux_amd64"}
	}, "the program for linux_amd64, program, is missing"},
	{"a host that is too old", func(f *forged) {
		f.set("plugin.json", scriptJSON("echo", `"min_host": "99.0.0",`))
		f.index["min_host"] = "99.0.0"
	}, "it needs xtts-host 99.0.0, and this is v1.2.3"},
	{"an environment without hashes", func(f *forged) {
		f.add("requirements.lock", "numpy==2.0.0\n")
		f.add("requirements.txt", "numpy\n")
		f.index["environment"] = "requirements.lock"
	}, "requirements.lock:1: numpy==2.0.0 has no hash"},
	{"an environment without a lock", func(f *forged) {
		f.add("requirements.txt", "numpy\n")
		f.index["environment"] = "requirements.lock"
	}, "requirements.txt is there, and requirements.lock is not"},
	{"an archive with no files", func(f *forged) { f.entries, f.index["files"] = nil, []any{} },
		"it has no plugin.json"},
}

// TestAttacks: each archive is refused by its name and with a hint, and nothing is written in or beside the folder.
func TestAttacks(t *testing.T) {
	t.Cleanup(release.Pretend("v1.2.3"))
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			f := forge()
			a.change(f)
			p := newPlace(t)
			p.write("evil.tar.gz", f.bytes(t))
			p.refused(InstallOptions{What: p.path("evil.tar.gz"), Yes: true}, a.want, "evil.tar.gz")
		})
	}
}

// TestNoArchive: files that are no archives at all.
func TestNoArchive(t *testing.T) {
	var tarred bytes.Buffer
	w := tar.NewWriter(&tarred)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "README", Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ content, want string }{
		"text":           {"hello", "not an archive of a plugin"},
		"nothing":        {"", "it is cut short"},
		"text, packed":   {gzipped(strings.Repeat("hello ", 200)), "it is damaged"},
		"nothing packed": {gzipped(""), "there is nothing in it"},
		"another tar":    {gzipped(tarred.String() + strings.Repeat("\x00", 1024)), `its first file is "README"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.write("evil.tar.gz", []byte(c.content))
			p.refused(InstallOptions{What: p.path("evil.tar.gz"), Yes: true}, c.want, "evil.tar.gz")
		})
	}
}

// TestForgedCanBeInstalled: the archive that the attacks change is right before.
func TestForgedCanBeInstalled(t *testing.T) {
	p := newPlace(t)
	p.write("echo.tar.gz", forge().bytes(t))
	if err := p.install(InstallOptions{What: p.path("echo.tar.gz"), Yes: true}); err != nil {
		t.Fatal(err, hint.Of(err))
	}
	info, err := os.Stat(p.path("plugins/echo/run"))
	if err != nil || info.Mode().Perm()&0o111 != 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// snapshot lists everything below a folder, with modes and contents.
func snapshot(t testing.TB, top string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line := path + " " + e.Type().String()
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + sumOf(string(data))
		}
		list = append(list, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
