package pluginstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
)

// server serves files over https, and returns a downloader that trusts it.
func server(t *testing.T, routes map[string]http.HandlerFunc) (*httptest.Server, *downloader) {
	t.Helper()
	mux := http.NewServeMux()
	for path, h := range routes {
		mux.HandleFunc(path, h)
	}
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	d := newDownloader()
	trusted := x509.NewCertPool()
	trusted.AddCert(s.Certificate())
	d.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: trusted}
	return s, d
}

func sends(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }
}

func redirects(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

// TestServers: what a server can do wrong.
func TestServers(t *testing.T) {
	plain := httptest.NewServer(sends([]byte("never read")))
	defer plain.Close()
	p := newPlace(t)
	p.key("my.key")
	whole, err := os.ReadFile(p.pack("echo", "1.0.0", "my.key"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	s, d := server(t, map[string]http.HandlerFunc{
		"/gone.tar.gz":    http.NotFound,
		"/busy.tar.gz":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"/to-http.tar.gz": redirects(plain.URL),
		"/circle.tar.gz":  redirects("/circle.tar.gz"),
		"/silent.tar.gz":  func(http.ResponseWriter, *http.Request) { <-done },
		"/half.tar.gz":    sends(whole[:len(whole)/2]),
		"/page.tar.gz":    sends([]byte("<html>sign in</html>")),
		"/declared.tar.gz": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3000000000")
		},
		"/stops.tar.gz": func(w http.ResponseWriter, _ *http.Request) {
			w.Write(whole[:100])
			w.(http.Flusher).Flush()
			<-done
		},
		"/cut.tar.gz": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			w.Write(whole)
		},
		"/long-signature.tar.gz": sends(whole),
		"/long-signature.tar.gz.minisig": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil { // without end
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		},
	})
	defer close(done)
	for name, want := range map[string]string{
		"gone": "the server has no such file", "busy": "the server answers 503", "to-http": "which is not https",
		"circle": "more than 5 redirects", "silent": "the server has stopped sending", "half": "it is cut short",
		"page": "not an archive of a plugin", "declared": "the server sends more than 2.0 GiB",
		"stops": "the server has stopped sending", "cut": "unexpected EOF", "long-signature": "sends more than",
	} {
		t.Run(name, func(t *testing.T) {
			p.TB = t
			if d.stall = time.Minute; want == errStalled.Error() {
				d.stall = 50 * time.Millisecond
			}
			p.refused(InstallOptions{What: s.URL + "/" + name + ".tar.gz", Yes: true, download: d}, want, name)
		})
	}
	for address, want := range map[string]string{
		"http://example.com/echo.tar.gz":     "is not an https address",
		"file:///etc/passwd":                 "is not an https address",
		"ftp://example.com/echo.tar.gz":      "is not an https address",
		"https://me:secret@example.com/x":    "has a user or a password in it",
		"https:///echo.tar.gz":               "is not an https address",
		strings.Replace(s.URL, "s:", ":", 1): "is not an https address",
	} {
		p.TB = t
		p.refused(InstallOptions{What: address, Yes: true, download: d}, want, "")
	}
	t.Run("a stranger's certificate", func(t *testing.T) {
		p.TB = t
		p.refused(InstallOptions{What: s.URL + "/half.tar.gz", Yes: true}, "certificate", "half")
	})
}

// TestEndless: a server that sends without end is cut off at the limit.
func TestEndless(t *testing.T) {
	s, d := server(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}})
	if _, err := d.small(t.Context(), s.URL+"/echo.tar.gz", 1<<20); err == nil ||
		!strings.Contains(err.Error(), "the server sends more than 1 MiB") {
		t.Error(err)
	}
}

// TestInterruptedDownload leaves nothing.
func TestInterruptedDownload(t *testing.T) {
	p := newPlace(t)
	ctx, interrupt := context.WithCancel(t.Context())
	s, d := server(t, map[string]http.HandlerFunc{"/": func(_ http.ResponseWriter, r *http.Request) {
		interrupt()
		<-r.Context().Done()
	}})
	before := snapshot(t, p.top)
	err := Install(ctx, &p.out, InstallOptions{What: s.URL + "/x.tar.gz", Plugins: p.path("plugins"), download: d})
	if !errors.Is(err, exit.ErrInterrupted) {
		t.Error(err)
	}
	if after := snapshot(t, p.top); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Errorf("left: %v", after)
	}
}

// TestInterruptedAfterDownload leaves nothing either, wherever it is interrupted, and takes away what a killed process
// has left.
func TestInterruptedAfterDownload(t *testing.T) {
	p := newPlace(t)
	whole, err := os.ReadFile(p.pack("echo", "1.0.0", ""))
	if err != nil {
		t.Fatal(err)
	}
	s, d := server(t, map[string]http.HandlerFunc{
		"/echo.tar.gz": sends(whole), "/echo.tar.gz.minisig": http.NotFound,
	})
	before := snapshot(t, p.top)
	p.write("tmp/xtts-host-plugin-killed/archive", whole[:100])
	o := InstallOptions{What: s.URL + "/echo.tar.gz", Plugins: p.path("plugins"), Yes: true, download: d}
	p.interrupts(before, 1000, o)
}

// TestInstallFromServer: an archive, its signature, and an index with addresses relative to it.
func TestInstallFromServer(t *testing.T) {
	p := newPlace(t)
	key := p.key("my.key")
	for _, version := range []string{"1.9.0", "1.10.0"} {
		p.pack("echo", version, "my.key")
	}
	if err := os.RemoveAll(p.path("echo")); err != nil {
		t.Fatal(err)
	}
	if err := MakeIndex(t.Context(), &p.out, p.top); err != nil {
		t.Fatal(err)
	}
	serve := http.FileServer(http.Dir(p.top))
	s, d := server(t, map[string]http.HandlerFunc{"/": serve.ServeHTTP})
	index := s.URL + "/index.json"
	if err := p.install(InstallOptions{What: "echo", Index: index, Yes: true, download: d}); err != nil {
		t.Fatal(err)
	}
	if text := p.out.String(); !strings.Contains(text, "installed  echo 1.10.0") || !strings.Contains(text, key) {
		t.Error(text)
	}
	p.refused(InstallOptions{What: "echo@1.8.0", Index: index, Yes: true, download: d}, "has no echo@1.8.0", "echo")
	p.refused(InstallOptions{What: "eco", Index: index, Yes: true, download: d}, "has no plugin eco", "eco")
	o := InstallOptions{What: "echo@1.9.0", Index: index, Yes: true, Replace: true, download: d}
	if err := p.install(o); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(p.pack("other", "1.0.0", ""))
	if err != nil {
		t.Fatal(err)
	}
	// What an index says of an archive has to be so.
	for what, change := range map[string]func(o *Offered){
		"and should have":              func(o *Offered) { o.SHA256 = sumOf("x") },
		"should be that of echo 9.9.9": func(o *Offered) { o.Version = "9.9.9" },
		"is the archive of other 1.0.0, and should be that of echo 1.": func(o *Offered) {
			o.URL, o.SHA256, o.Signer = "other-1.0.0.tar.gz", sumOf(string(other)), ""
		},
		"leads out of its folder":     func(o *Offered) { o.URL = "../" + o.URL },
		"is not an https address":     func(o *Offered) { o.URL = "http://example.com/x.tar.gz" },
		"is no public key":            func(o *Offered) { o.Signer = "RWx" },
		"is signed by another one":    func(o *Offered) { o.Signer = p.key("other.key") },
		"sha256 are needed":           func(o *Offered) { o.SHA256 = "x" },
		"has no echo for linux_amd64": func(o *Offered) { o.Platforms = []string{"plan9_mips"} },
	} {
		text, err := os.ReadFile(p.path("index.json"))
		if err != nil {
			t.Fatal(err)
		}
		ix, err := parseIndex("index.json", text)
		if err != nil {
			t.Fatal(err)
		}
		ix.Plugins = ix.Plugins[:1]
		change(&ix.Plugins[0])
		if text, err = json.Marshal(ix); err != nil {
			t.Fatal(err)
		}
		p.write("forged.json", text)
		p.refused(InstallOptions{What: "echo", Index: p.path("forged.json"), Replace: true, Yes: true}, what, "")
	}
}
