package page

import (
	"bytes"
	"encoding/base64"
	"html/template"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// MostMedia bounds the sounds and pictures that are in a page itself, in bytes. The page links to the others.
const MostMedia = 20 << 20

// Medium is a sound or a picture of a run: in the page itself as Data, or else as a Link to its file.
type Medium struct {
	Data template.URL
	Link template.URL
	Name string
}

// Media takes files of run folders into a page, as long as they fit.
type Media struct {
	left int64
	// Linked counts the files that did not fit.
	Linked int
}

// NewMedia has room for so many bytes.
func NewMedia(most int64) *Media { return &Media{left: most} }

// kinds are the files that are taken, by their endings: the type, and what such a file begins with.
var kinds = map[string]struct {
	mime  string
	begin func(data []byte) bool
}{
	".wav": {"audio/wav", func(d []byte) bool {
		return len(d) > 12 && bytes.HasPrefix(d, []byte("RIFF")) && string(d[8:12]) == "WAVE"
	}},
	".png": {"image/png", func(d []byte) bool { return bytes.HasPrefix(d, []byte("\x89PNG\r\n\x1a\n")) }},
}

// Take returns a file of a run folder. link leads from the page to the folder. It is nil if the file is not there, is
// no sound and no picture, or is not a regular file: a link in the folder is never followed.
func (m *Media) Take(folder, name, link string) *Medium {
	kind, ok := kinds[path.Ext(name)]
	if name == "" || !ok {
		return nil
	}
	f, err := files.In(folder, strings.Split(name, "/")...).Open()
	if err != nil {
		return nil
	}
	defer f.Close()
	medium := &Medium{Name: name}
	if f.Size() > m.left {
		m.Linked++
		medium.Link = linkTo(link, name)
		return medium
	}
	data := make([]byte, f.Size())
	if files.ReadAt(f, data, 0) != nil || !kind.begin(data) {
		return nil
	}
	m.left -= f.Size()
	medium.Data = template.URL("data:" + kind.mime + ";base64," + base64.StdEncoding.EncodeToString(data))
	return medium
}

// PathTo is the path from the file of a page to a run folder, with slashes: what Of and Media take as a link. It is
// absolute if there is no other.
func PathTo(folder, file string) string {
	from, err := filepath.Abs(filepath.Dir(file))
	to, terr := filepath.Abs(folder)
	if err != nil || terr != nil {
		return filepath.ToSlash(folder)
	}
	rel, err := filepath.Rel(from, to)
	if err != nil {
		return filepath.ToSlash(to)
	}
	return filepath.ToSlash(rel)
}

// linkTo is the address of a file in a folder, from the page. It begins with a dot, so that no part of it is taken for
// a protocol.
func linkTo(folder, name string) template.URL {
	var parts []string
	for _, part := range strings.Split(path.Join(folder, name), "/") {
		parts = append(parts, url.PathEscape(part))
	}
	address := strings.Join(parts, "/")
	if !strings.HasPrefix(address, "/") {
		address = "./" + address
	}
	return template.URL(address)
}
