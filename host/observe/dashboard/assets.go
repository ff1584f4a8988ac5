package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
)

// static is the page: all of it is here, and nothing is fetched from elsewhere. uplot.js and uplot.css are uPlot as its
// authors publish it, with its license beside it.
//
//go:embed static
var static embed.FS

var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// page answers with the page, which asks for the rest.
func (s *Server) page(w http.ResponseWriter, q *http.Request) {
	if name := q.PathValue("run"); name != "" {
		if s.find(number(name, -1)) == nil {
			http.Error(w, "there is no such run", http.StatusNotFound)
			return
		}
	} else if len(s.all()) == 1 {
		http.Redirect(w, q, "/runs/0", http.StatusSeeOther)
		return
	}
	sendAsset(w, q, "page.html")
}

// asset answers with a part of the page.
func asset(w http.ResponseWriter, q *http.Request) { sendAsset(w, q, q.PathValue("name")) }

func sendAsset(w http.ResponseWriter, q *http.Request, name string) {
	data, err := static.ReadFile("static/" + path.Base(name))
	kind, ok := types[path.Ext(name)]
	if err != nil || !ok || path.Base(name) != name {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache") // it is asked for, and not sent again unless it has changed
	w.Header().Set("ETag", tag)
	if q.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Write(data)
}
