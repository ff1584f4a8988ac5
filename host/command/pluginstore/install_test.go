package pluginstore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestPackIsDeterministic: the same files make the same bytes, wherever and whenever they are.
func TestPackIsDeterministic(t *testing.T) {
	var first []byte
	for range 2 {
		p := newPlace(t)
		data, err := os.ReadFile(p.pack("echo", "1.0.0", ""))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		} else if !bytes.Equal(first, data) {
			t.Error("the bytes differ")
		}
	}
}

// TestPackRefuses: plugins that nobody could install.
func TestPackRefuses(t *testing.T) {
	for what, change := range map[string]func(p *place){
		"it has no plugin.sum":   func(p *place) { os.Remove(p.path("echo/plugin.sum")) },
		"the plugin is modified": func(p *place) { p.write("echo/run", []byte("exit 3\n")) },
		"it has no plugin.json":  func(p *place) { os.Remove(p.path("echo/plugin.json")) },
		"run is a link": func(p *place) {
			os.Rename(p.path("echo/run"), p.path("echo/r"))
			os.Symlink("r", p.path("echo/run"))
		},
		"the folder of the plugin: stat": func(p *place) { os.RemoveAll(p.path("echo")) },
		"is a file, not the folder of a plugin": func(p *place) {
			os.RemoveAll(p.path("echo"))
			p.write("echo", nil)
		},
		"begins with a dot": func(p *place) { p.addFile("echo", ".hidden", "x") },
		"nobody could install it: \"Run\" and \"run\" are the same name": func(p *place) {
			p.addFile("echo", "Run", "x")
		},
		"requirements.lock names no p": func(p *place) {
			p.addFile("echo", "requirements.txt", "numpy\n")
			p.addFile("echo", "requirements.lock", "# empty\n")
		},
	} {
		p := newPlace(t)
		p.plugin("echo", "1.0.0", "")
		change(p)
		p.write("out/kept", nil)
		err := Pack(&p.out, PackOptions{Folder: p.path("echo"), Out: p.path("out/echo.tar.gz")})
		if err == nil || !strings.Contains(err.Error(), what) || exit.Code(err) != exit.StatusRefused {
			t.Errorf("%s: %v", what, err)
		}
		if names, _ := filepath.Glob(p.path("out/*")); len(names) != 1 {
			t.Errorf("%s: left %v", what, names)
		}
	}
}

// addFile adds a file to a plugin and to its plugin.sum.
func (p *place) addFile(plugin, name, content string) {
	p.Helper()
	sums, err := os.ReadFile(p.path(plugin + "/plugin.sum"))
	if err != nil {
		p.Fatal(err)
	}
	p.write(plugin+"/"+name, []byte(content))
	p.write(plugin+"/plugin.sum", append(sums, sumOf(content)+"  "+name+"\n"...))
}

// TestPackWithoutKey: the signature of an archive that was there before does not stay beside the new one.
func TestPackWithoutKey(t *testing.T) {
	p := newPlace(t)
	p.key("my.key")
	p.pack("echo", "1.0.0", "my.key")
	file := p.pack("echo", "1.0.0", "")
	if _, err := os.Lstat(file + signature.Suffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old signature: %v", err)
	}
}

// TestInstall: shown, asked, installed, listed as it is, changed, removed.
func TestInstall(t *testing.T) {
	p := newPlace(t)
	key := p.key("my.key")
	file := p.pack("echo", "1.0.0", "my.key")
	asked := ""
	no := func(question string) (bool, error) { asked = question; return false, nil }
	p.refused(InstallOptions{What: file}, "there is no terminal to ask on", "echo")
	p.refused(InstallOptions{What: file, Ask: no}, "plugin echo is not installed", "echo")
	if !strings.Contains(asked, "install echo into") {
		t.Errorf("asked %q", asked)
	}
	for _, line := range []string{
		"network    none", "folders    none", "GPU        none", "by " + key, "The key is new",
	} {
		if !strings.Contains(p.out.String(), line) {
			t.Errorf("%q is not shown:\n%s", line, &p.out)
		}
	}
	yes := func(string) (bool, error) { return true, nil }
	if err := p.install(InstallOptions{What: file, Ask: yes}); err != nil {
		t.Fatal(err)
	}
	p.refused(InstallOptions{What: file, Yes: true}, "plugin echo is installed already", "echo")
	if err := Verify(&p.out, p.path("plugins"), "", true); err != nil {
		t.Error(err)
	}
	p.write("plugins/echo/run", []byte("exit 2\n"))
	p.write("plugins/echo/more", []byte("x"))
	p.out.Reset()
	err := Verify(&p.out, p.path("plugins"), "echo", false)
	if !errors.Is(err, ErrChanged) || exit.Code(err) != exit.StatusPlugin ||
		!strings.Contains(p.out.String(), "run has changed, more was added") {
		t.Errorf("%v\n%s", err, &p.out)
	}
	if err := Remove(&p.out, p.path("plugins"), "echo", false); err == nil {
		t.Error("changed files were removed")
	}
	// The new version takes the place of all that, and says so before.
	p.write("plugins/echo/.venv/bin/python", []byte("x"))
	replace := InstallOptions{What: p.pack("echo", "1.1.0", "my.key"), Replace: true}
	p.refused(replace, "there is no terminal to ask on", "echo")
	for _, lost := range []string{"removes    run has changed", "more was added", ".venv, which was made after"} {
		if !strings.Contains(p.out.String(), lost) {
			t.Errorf("%q is not shown:\n%s", lost, &p.out)
		}
	}
	replace.Yes = true
	if err := p.install(replace); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.path("plugins/echo/more")); err == nil {
		t.Error("a file of the old version is left")
	}
	if err := Remove(&p.out, p.path("plugins"), "echo", false); err != nil {
		t.Error(err)
	}
	if left := snapshot(t, p.path("plugins")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// TestPythonIsShown: what the environment of a plugin is made for.
func TestPythonIsShown(t *testing.T) {
	p := newPlace(t)
	p.plugin("echo", "1.0.0", "")
	p.addFile("echo", "requirements.txt", "numpy\n")
	p.addFile("echo", "requirements.lock", "# It holds for Python 3.12 on linux-x86_64: elsewhere, make lock.\n"+
		"numpy==2.0.0 --hash=sha256:"+sumOf("x")+"\n")
	p.addFile("echo", "Makefile", "environment:\n")
	o := PackOptions{Folder: p.path("echo"), Out: p.path("echo.tar.gz")}
	if err := Pack(&p.out, o); err != nil {
		t.Fatal(err)
	}
	if err := p.install(InstallOptions{What: o.Out, Yes: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Python     needs an environment, which is made from requirements.lock\n", " for Python 3.12 on linux-x86_64\n",
		"environment\n",
	} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &p.out)
		}
	}
}

// TestSignatures: whose archives are taken.
func TestSignatures(t *testing.T) {
	p := newPlace(t)
	mine, other := p.key("my.key"), p.key("other.key")
	signed := p.pack("echo", "1.0.0", "my.key")
	beside := signed + signature.Suffix
	right, err := os.ReadFile(beside)
	if err != nil {
		t.Fatal(err)
	}
	unstated := bytes.Replace(right, []byte("signature of xtts-host, public key "), []byte("by hand: "), 1)
	p.pack("other", "1.0.0", "my.key")
	ofOther, err := os.ReadFile(p.path("other-1.0.0.tar.gz.minisig"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		text []byte
		o    InstallOptions
		want string
	}{
		{"no signature where one is needed", nil, InstallOptions{RequireSignatures: true}, "plugin echo is not signed"},
		{"no signature with a key", nil, InstallOptions{Key: mine}, "plugin echo is not signed"},
		{"another key than that of the author", right, InstallOptions{Key: other},
			"it is of another key than " + other},
		{"a key that is none", right, InstallOptions{Key: "RWxyz"}, "is no public key of minisign"},
		{"a file of a key that is not there", right, InstallOptions{Key: "none.pub"}, "none.pub"},
		{"a signature that does not say whose", unstated, InstallOptions{}, "does not say by which key"},
		{"the signature of another file", ofOther, InstallOptions{}, "the file has changed since"},
		{"a signature with a forged comment", bytes.Replace(right, []byte("echo 1.0.0"), []byte("echo 9.0.0"), 1),
			InstallOptions{}, "the signature is not right"},
		{"a signature that names another key", bytes.Replace(right, []byte(mine), []byte(other), 1), InstallOptions{},
			"it is of another key than " + other},
		{"something else", []byte("hello\n"), InstallOptions{Key: mine}, "it is not in the format of minisign"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.TB = t
			os.Remove(beside)
			if c.text != nil {
				p.write(filepath.Base(beside), c.text)
			}
			c.o.What, c.o.Yes = signed, true
			p.refused(c.o, c.want, "echo")
		})
	}
	p.TB = t
	p.write(filepath.Base(beside), unstated)
	if err := p.install(InstallOptions{What: signed, Key: p.path("my.key.pub"), Yes: true}); err != nil {
		t.Fatal(err)
	}
	// From now on the plugin has this key, also after it was removed.
	if err := Remove(&p.out, p.path("plugins"), "echo", false); err != nil {
		t.Fatal(err)
	}
	foreign := p.pack("echo", "2.0.0", "other.key")
	p.refused(InstallOptions{What: foreign, Yes: true}, "and is signed by another one", "echo")
	p.refused(InstallOptions{What: foreign, Yes: true, Key: other}, "and is signed by another one", "echo")
	p.refused(InstallOptions{What: p.pack("echo", "3.0.0", ""), Yes: true}, "and this archive is not signed", "echo")
	if err := p.install(InstallOptions{What: signed, RequireSignatures: true, Yes: true}); err != nil {
		t.Error(err)
	}
}

// TestRequireSigned: what a run with --require-signatures takes.
func TestRequireSigned(t *testing.T) {
	p := newPlace(t)
	p.key("my.key")
	file := p.pack("echo", "1.0.0", "my.key")
	require := func(want string) {
		t.Helper()
		entries, err := catalog.Scan(p.path("plugins"))
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		err = catalog.RequireSigned(entries)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got  %v\nwant %q", err, want)
		}
	}
	if err := p.install(InstallOptions{What: file, Yes: true}); err != nil {
		t.Fatal(err)
	}
	require("")
	record := "plugins/echo/" + archive.Record
	for _, c := range []struct {
		name, want string
		change     func()
	}{
		{"a changed file", "plugin echo has changed since it was installed: run has changed", func() {
			p.write("plugins/echo/run", []byte("exit 9\n"))
		}},
		{"another archive", "the file has changed since", func() {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			zipped := slices.Clone(data)
			zipped[4] = 1 // a time in the header of gzip, which changes nothing else
			p.write(record+"/archive.tar.gz", zipped)
		}},
		{"no signature", "plugin echo is not signed", func() { os.Remove(p.path(record + "/archive.tar.gz.minisig")) }},
		{"no archive", "plugin echo is not signed: it was not installed from an archive", func() {
			os.RemoveAll(p.path(record))
		}},
		{"no key", "plugin echo is signed, and no key is known for it", func() {
			os.Remove(p.path("config/xtts-host/plugin-keys"))
		}},
		{"another key", "is signed by another one", func() {
			p.write("config/xtts-host/plugin-keys", []byte("echo "+p.key("other.key")+"\n"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.change()
			require(c.want)
		})
		if err := os.RemoveAll(p.path("config/xtts-host")); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(p.path("plugins/echo")); err != nil {
			t.Fatal(err)
		}
		if err := p.install(InstallOptions{What: file, Yes: true}); err != nil {
			t.Fatal(err)
		}
	}
	require("")
}

// TestPlaces: what is in the way stays as it is.
func TestPlaces(t *testing.T) {
	p := newPlace(t)
	file := p.pack("echo", "1.0.0", "")
	o := InstallOptions{What: file, Yes: true, Replace: true}
	if err := os.CopyFS(p.path("plugins/echo"), os.DirFS(p.path("echo"))); err != nil {
		t.Fatal(err)
	}
	p.refused(o, "was not installed from an archive", "echo")
	if err := os.Rename(p.path("plugins/echo"), p.path("plugins/mine")); err != nil {
		t.Fatal(err)
	}
	p.refused(o, "plugin echo is there already", "mine")
	if err := os.RemoveAll(p.path("plugins/mine")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.path("elsewhere"), p.path("plugins/echo")); err != nil {
		t.Fatal(err)
	}
	p.refused(o, "is a link, which is not replaced", "echo")
	if err := Remove(&p.out, p.path("plugins"), "echo", true); err == nil {
		t.Error("a link was removed")
	}
	if err := os.Remove(p.path("plugins/echo")); err != nil {
		t.Fatal(err)
	}
	if err := p.install(InstallOptions{What: p.pack("other", "1.0.0", ""), Yes: true}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p.path("plugins/other"), p.path("plugins/echo")); err != nil {
		t.Fatal(err)
	}
	p.write("plugins/echo/plugin.json", []byte("changed, so that it is no plugin other"))
	p.refused(o, "has the plugin other: it is not replaced", "echo")
	p.refused(InstallOptions{What: p.pack("augment", "1.0.0", ""), Yes: true}, "comes with xtts-host", "augment")
	for _, name := range []string{"", ".", "..", "../echo", "a/b", ".installed"} {
		if err := Remove(&p.out, p.path("plugins"), name, true); err == nil {
			t.Errorf("removed %q", name)
		}
	}
}

// cutOff is a context that ends after some looks at it.
type cutOff struct {
	context.Context
	looks int
}

func (c *cutOff) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestInterruptedInstallation leaves nothing, wherever it is interrupted.
func TestInterruptedInstallation(t *testing.T) {
	p := newPlace(t)
	file := p.pack("echo", "1.0.0", "")
	p.interrupts(snapshot(t, p.top), 100, InstallOptions{What: file, Plugins: p.path("plugins"), Yes: true})
}

// interrupts interrupts an installation of echo at each look at its context, of which it has fewer than most. What is
// there must stay as before, until the installation succeeds.
func (p *place) interrupts(before []string, most int, o InstallOptions) {
	p.Helper()
	interrupted := 0
	for looks := range most {
		err := Install(&cutOff{p.Context(), looks}, &p.out, o)
		if err == nil {
			break
		}
		interrupted++
		if !errors.Is(err, exit.ErrInterrupted) {
			p.Fatal(err)
		}
		if after := snapshot(p, p.top); !slices.Equal(before, after) {
			p.Fatalf("after %d looks, left: %v", looks, after)
		}
	}
	if _, err := os.Stat(p.path("plugins/echo/plugin.json")); err != nil || interrupted < 3 {
		p.Errorf("interrupted %d times, then %v", interrupted, err)
	}
}

// TestKeys: what makes no key. scripts/test-plugins-pack.sh makes one with a password, which takes a second and 1 GiB.
func TestKeys(t *testing.T) {
	p := newPlace(t)
	for _, words := range [][]string{{"one", "two"}, {"", ""}} {
		says := func(string) (string, error) {
			word := words[0]
			words = words[1:]
			return word, nil
		}
		if err := Key(&p.out, KeyOptions{File: p.path("my.key"), Password: says}); err == nil {
			t.Error("different or empty passwords made a key")
		}
	}
	p.key("my.key")
	if info, err := os.Stat(p.path("my.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := Key(&p.out, KeyOptions{File: p.path("my.key"), NoPassword: true}); err == nil {
		t.Error("a key was overwritten")
	}
	p.write("none.key", []byte("hello\n"))
	for _, file := range []string{"none.key", "absent.key", "my.key.pub"} {
		o := PackOptions{Folder: p.plugin("echo", "1.0.0", ""), Out: p.path("echo.tar.gz"), Sign: p.path(file)}
		if err := Pack(&p.out, o); err == nil || hint.Of(err) == "" || exit.Code(err) != exit.StatusRefused {
			t.Errorf("signed with %s: %v", file, err)
		}
	}
}

// TestInstalledMeanwhile: two installations at the same time leave one whole plugin.
func TestInstalledMeanwhile(t *testing.T) {
	p := newPlace(t)
	file := p.pack("echo", "1.0.0", "")
	meanwhile := func(string) (bool, error) {
		return true, p.install(InstallOptions{What: file, Yes: true})
	}
	err := Install(t.Context(), &p.out, InstallOptions{What: file, Plugins: p.path("plugins"), Ask: meanwhile})
	if err == nil || !strings.Contains(err.Error(), "has come from another installation meanwhile") {
		t.Error(err)
	}
	if err := Verify(&p.out, p.path("plugins"), "", false); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(p.path("plugins/.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
