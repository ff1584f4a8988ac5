package pluginstore

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// entries are the plugins that are there.
func (p *place) entries() []catalog.Entry {
	p.Helper()
	all, err := catalog.Scan(p.path("plugins"))
	if err != nil {
		p.Fatal(err)
	}
	return all
}

// lock writes the lock of a run with the plugins that are there.
func (p *place) lock(name string) string {
	p.Helper()
	l, err := catalog.LockOf(p.entries())
	if err != nil {
		p.Fatal(err)
	}
	text, err := l.Text()
	if err != nil {
		p.Fatal(err)
	}
	p.write(name, text)
	return p.path(name)
}

// lockedRun has a run whose lock names an archive of a server, and the machine of a colleague with that lock.
type lockedRun struct {
	mine, yours        *place
	key, address, text string // text is that of the lock
	lock               string // file of the colleague
	install            func(archives ...string) error
}

func newLockedRun(t *testing.T) *lockedRun {
	mine := newPlace(t)
	key := mine.key("my.key")
	mine.pack("echo", "1.0.0", "my.key")
	serve := http.FileServer(http.Dir(mine.top))
	s, d := server(t, map[string]http.HandlerFunc{"/": serve.ServeHTTP})
	address := s.URL + "/echo-1.0.0.tar.gz"
	if err := mine.install(InstallOptions{What: address, Yes: true, download: d}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(mine.lock("plugins.lock"))
	if err != nil {
		t.Fatal(err)
	}
	yours := newPlace(t)
	yours.write("plugins.lock", text)
	lock := yours.path("plugins.lock")
	return &lockedRun{mine, yours, key, address, string(text), lock, func(archives ...string) error {
		o := InstallOptions{Plugins: yours.path("plugins"), Yes: true, download: d}
		return InstallLocked(t.Context(), &yours.out, lock, archives, o)
	}}
}

// TestLocked: a colleague installs what a run has used, and a run refuses other plugins.
func TestLocked(t *testing.T) {
	r := newLockedRun(t)
	yours, lock, install := r.yours, r.lock, r.install
	for _, want := range []string{r.address, r.key, `"run": "` + sumOf("exit 1\n")} {
		if !strings.Contains(r.text, want) {
			t.Errorf("%q is not in %s", want, r.text)
		}
	}
	if err := install(); err != nil {
		t.Fatal(err)
	}
	if err := catalog.RequireLocked(lock, yours.entries()); err != nil {
		t.Error(err)
	}
	yours.out.Reset()
	if err := install(); err != nil || yours.out.String() != "echo 1.0.0: there already\n" {
		t.Errorf("%v, %s", err, &yours.out)
	}

	// What differs is named.
	yours.plugin("echo", "1.1.0", "")
	yours.addFile("echo", "more.py", "pass\n")
	if err := os.RemoveAll(yours.path("plugins/echo")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(yours.path("echo"), yours.path("plugins/echo")); err != nil {
		t.Fatal(err)
	}
	err := catalog.RequireLocked(lock, yours.entries())
	want := fmt.Sprintf("plugin echo differs from %s: version: 1.0.0 -> 1.1.0, added: more.py, changed: plugin.json",
		lock)
	if err == nil || err.Error() != want || !strings.Contains(hint.Of(err), "plugins install --locked") {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := install(); err == nil || !strings.Contains(err.Error(), "is not replaced") {
		t.Error(err)
	}
}

// TestLockedArchives: the archive of the lock is one of the given files, or none.
func TestLockedArchives(t *testing.T) {
	r := newLockedRun(t)
	mine, yours, lock, install := r.mine, r.yours, r.lock, r.install
	yours.write("plugins.lock", []byte(strings.Replace(r.text, r.address, "", 1)))
	err := install(yours.pack("echo", "1.2.0", ""))
	if exit.Code(err) != exit.StatusRefused || !strings.Contains(err.Error(), "is none of the given ones") {
		t.Error(err)
	}
	if err := install(mine.path("echo-1.0.0.tar.gz")); err != nil {
		t.Error(err)
	}
	if err := catalog.RequireLocked(lock, yours.entries()); err != nil {
		t.Error(err)
	}
	// A lock does not make another signer the known one.
	yours.write("plugins.lock", []byte(strings.Replace(r.text, r.key, yours.key("other.key"), 1)))
	if err := Remove(&yours.out, yours.path("plugins"), "echo", false); err != nil {
		t.Fatal(err)
	}
	if err := install(); err == nil || !strings.Contains(err.Error(), "is signed by another one") {
		t.Error(err)
	}
	yours.write("plugins.lock", []byte(strings.Replace(r.text, `"name": "echo"`, `"name": "other"`, 1)))
	if err := install(); err == nil || !strings.Contains(err.Error(), "should be that of other 1.0.0") {
		t.Error(err)
	}
	yours.write("plugins.lock", []byte("{}"))
	if err := install(); err == nil || !strings.Contains(err.Error(), "not a lock of plugins") {
		t.Error(err)
	}
}

// TestLockWithoutKeys: a run whose user has a damaged file of keys knows no signer, and starts.
func TestLockWithoutKeys(t *testing.T) {
	p := newPlace(t)
	p.key("my.key")
	if err := p.install(InstallOptions{What: p.pack("echo", "1.0.0", "my.key"), Yes: true}); err != nil {
		t.Fatal(err)
	}
	p.write("config/xtts-host/plugin-keys", []byte("echo\n"))
	l, err := catalog.LockOf(p.entries())
	if err != nil || len(l.Plugins) != 1 || l.Plugins[0].Archive == "" || l.Plugins[0].Signer != "" {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestLockedIndex: an index serves a lock also if another entry of it is wrong, or if its sums are in capitals.
func TestLockedIndex(t *testing.T) {
	r := newLockedRun(t)
	whole, err := os.ReadFile(r.mine.path("echo-1.0.0.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r.yours.write("plugins.lock", []byte(strings.Replace(r.text, r.address, "", 1)))
	r.yours.write("echo.tar.gz", whole)
	r.yours.write("index.json", fmt.Appendf(nil, `{"format": 1, "plugins": [
{"name": "other", "version": "1.0.0", "platforms": ["any"], "url": "../out", "sha256": %q, "signer": "RWx"},
{"name": "echo", "version": "1.0.0", "platforms": ["any"], "url": "echo.tar.gz", "sha256": %q}]}`, sumOf("x"),
		strings.ToUpper(sumOf(string(whole)))))
	signed, err := os.ReadFile(r.mine.path("echo-1.0.0.tar.gz.minisig"))
	if err != nil {
		t.Fatal(err)
	}
	r.yours.write("echo.tar.gz.minisig", signed)
	o := InstallOptions{Plugins: r.yours.path("plugins"), Index: r.yours.path("index.json"), Yes: true}
	if err := InstallLocked(t.Context(), &r.yours.out, r.lock, nil, o); err != nil {
		t.Fatal(err)
	}
	if err := catalog.RequireLocked(r.lock, r.yours.entries()); err != nil {
		t.Error(err)
	}
}
