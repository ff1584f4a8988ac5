package ogg

import (
	"io"
	"sort"
)

// Bodies is the bodies of all pages of a stream, one after another, without the headers. It is safe for concurrent use.
type Bodies struct {
	Size int64

	s     *Stream
	pages []body
}

// body is that of one page.
type body struct {
	at     int64 // in the bodies
	offset int64 // in the file
}

// Bodies reads the headers of all pages. It does not check the checksums.
func (s *Stream) Bodies() (*Bodies, error) {
	b := &Bodies{s: s}
	var p page
	for at := int64(0); at < s.size && p.flags&last == 0; at = p.end() {
		if err := p.header(s.r, s.size, at); err != nil {
			return nil, err
		}
		if err := s.owns(&p); err != nil {
			return nil, err
		}
		b.pages = append(b.pages, body{b.Size, at + int64(minPage+len(p.segments))})
		b.Size += p.size() - int64(minPage+len(p.segments))
	}
	return b, nil
}

// ReadAt is that of io.ReaderAt.
func (b *Bodies) ReadAt(dst []byte, at int64) (n int, err error) {
	i := sort.Search(len(b.pages), func(i int) bool { return b.pages[i].at > at }) - 1
	for ; n < len(dst) && i >= 0 && i < len(b.pages); i++ {
		end := b.Size
		if i+1 < len(b.pages) {
			end = b.pages[i+1].at
		}
		part := dst[n:min(len(dst), n+int(max(0, end-at)))]
		got, err := b.s.r.ReadAt(part, b.pages[i].offset+at-b.pages[i].at)
		if n, at = n+got, at+int64(got); got < len(part) {
			return n, err
		}
	}
	if n < len(dst) {
		return n, io.EOF
	}
	return n, nil
}
