package dataset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// ReadContents sets Contents, from the bytes of all recordings and arrays. It reads only files that the cache does not
// know. progress may be nil.
func (ix *Index) ReadContents(ctx context.Context, progress Progress) error {
	r := ix.recordings
	var unread []int // uses
	for n, use := range r.first() {
		if use >= 0 && r.all[n].content == (half{}) {
			unread = append(unread, use)
		}
	}
	slices.Sort(unread) // in the order of the list, which often is that on the disk
	report := func(int) {}
	if progress != nil {
		report = func(done int) { progress("recordings of "+ix.List, done, len(unread)) }
	}
	var read atomic.Bool
	err := Each(ctx, 8, len(unread), report, func(i int) error {
		content, err := ix.content(unread[i])
		if err == nil {
			r.all[r.uses[unread[i]]].content = content
			read.Store(true)
		}
		return hostTrouble(err) // clips of a file that cannot be read are left out when they are decoded
	})
	if err != nil {
		return err
	}
	h := sha256.New()
	for _, n := range r.uses {
		h.Write(r.all[n].content[:])
	}
	ix.Contents = hex.EncodeToString(h.Sum(nil))
	r.changed = r.changed || read.Load()
	ix.CacheError = cmp.Or(ix.CacheError, r.store())
	return nil
}

// content hashes the file of a use of recordings.
func (ix *Index) content(use int) (half, error) {
	row, array := &ix.Rows[use/ix.recordings.perRow], use%ix.recordings.perRow
	if array == 0 {
		return contentOf(row.Path)
	}
	for i, c := range ix.Columns.list() {
		if c.spec.Origin == manifest.OriginFile {
			if array--; array == 0 {
				return hashArray(ix.Columns.arrays, ix.Dir, row.Values[i])
			}
		}
	}
	return half{}, nil
}

func contentOf(path string) (content half, err error) {
	f, err := files.Open(path)
	if err != nil {
		return content, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return content, err
	}
	return half(h.Sum(nil)), nil
}

// Each calls do for 0 to n-1 from several goroutines, and waits for them. It stops at the first error. done gets the
// number of completed calls, from one goroutine at a time.
func Each(ctx context.Context, workers, n int, done func(n int), do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	var mu sync.Mutex // guards completed and the calls of done
	completed := 0
	for range min(workers, n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					cancel(err)
				}
				mu.Lock()
				completed++
				done(completed)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
