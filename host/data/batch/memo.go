package batch

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
	"sync/atomic"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// memo answers calls of a stage instance from the feature cache, row by row.
type memo struct {
	cache   *featurecache.Cache
	name    string  // of the instance
	why     string  // training batches do not use the cache; empty if they do
	evalToo bool    // evaluation batches use it
	ports   []ports // by bucket

	// rows; those of a batch that is built again count once
	hits, misses, stored, damaged atomic.Int64
}

// uses reports whether batches of training, or of evaluations, use the cache.
func (m *memo) uses(eval bool) bool {
	switch {
	case m == nil:
		return false
	case eval:
		return m.evalToo
	}
	return m.why == ""
}

// port is a tensor that a port of the instance is bound to.
type port struct {
	ring.Tensor
	lengths ring.Tensor // i32[B], if counted
	counted bool
	padding []byte // one element
}

// valid returns the bytes of a row up to its length.
func (p *port) valid(slot []byte, row int) []byte {
	data := p.Row(slot, row)
	if !p.counted {
		return data
	}
	n := int(int32(binary.LittleEndian.Uint32(p.lengths.Row(slot, row))))
	if n < 0 || n > p.Shape[1] {
		return data // not a length: the content decides, whatever it is
	}
	return data[:n*(len(data)/p.Shape[1])]
}

// fits reports whether data can be the valid part of a row.
func (p *port) fits(n int) bool {
	size := p.Bytes() / p.Shape[0]
	return n == size || p.counted && n < size && n%(size/p.Shape[1]) == 0
}

// ports are the ports of an instance in a bucket, in the order of its declaration.
type ports struct {
	in, out []port
	hidden  []blank           // the tensors of in
	prefix  [sha256.Size]byte // of all keys
}

// newPorts reports false if a tensor's padding cannot be written.
func newPorts(in catalog.Instance, layout *ring.Layout, identity [sha256.Size]byte) (p ports, ok bool) {
	h := sha256.New()
	h.Write(identity[:])
	find := func(specs []manifest.TensorSpec, bound map[string]string, kind byte) (list []port, ok bool) {
		for _, spec := range specs {
			t, found := layout.Find(bound[spec.Name])
			if !found {
				continue // a port that is not bound
			}
			one := port{Tensor: t}
			if one.padding, ok = t.Padding(); !ok {
				return nil, false
			}
			name := bound[spec.Lengths]
			if name == "" {
				name = in.Inputs[spec.Lengths] // of an output that is as long as an input
			}
			if l, found := layout.Find(name); found && spec.Lengths != "" && l.DType == manifest.I32 &&
				len(t.Shape) > 1 && t.Shape[1] > 0 {
				one.lengths, one.counted = l, true
			}
			writeSpec(h, kind, spec.Name, &one)
			list = append(list, one)
		}
		return list, true
	}
	if p.in, ok = find(in.Stage.Inputs, in.Inputs, 'i'); !ok {
		return p, false
	}
	p.hidden = blanks(in, layout)
	if p.out, ok = find(in.Stage.Outputs, in.Outputs, 'o'); !ok {
		return p, false
	}
	h.Sum(p.prefix[:0])
	return p, true
}

// writeSpec hashes what a row of a port looks like, without the width of the bucket.
func writeSpec(h hash.Hash, kind byte, name string, p *port) {
	shape := p.Shape[1:]
	if p.counted {
		shape = p.Shape[2:]
	}
	b := []byte{kind}
	for _, text := range []string{name, string(p.DType)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(shape)))
	for _, n := range shape {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	h.Write(b)
}

// lookup is what the cache has of a batch.
type lookup struct {
	memo *memo
	*ports
	slot   []byte
	keys   []featurecache.Key // of rows with a clip
	sent   []int32            // as Batch.Rows, with -1 also for rows that the cache has
	found  [][2]int           // by row: the part of data that is its entry; empty if the cache has none
	missed int                // rows
	counts int64              // 1, or 0 for a batch that was counted before
	data   []byte
	aside  aside // what the stage does not see of the rows that the cache has
}

var lookups = sync.Pool{New: func() any { return new(lookup) }}

// look asks the cache for the rows of a batch. counted says that the batch was counted before. The caller calls free.
func (m *memo) look(slot []byte, bucket int, rows []int32, counted bool) *lookup {
	l := lookups.Get().(*lookup)
	*l = lookup{
		memo: m, ports: &m.ports[bucket], slot: slot, keys: l.keys[:0], sent: append(l.sent[:0], rows...),
		found: l.found[:0], data: l.data[:0],
		aside: aside{l.aside.rows[:0], l.aside.saved}, counts: 1,
	}
	if counted {
		l.counts = 0
	}
	h := sha256.New()
	for i, row := range rows {
		var key featurecache.Key
		from := len(l.data)
		if row >= 0 {
			l.hash(h, i, &key)
			var result featurecache.Result
			l.data, result = m.cache.Get(key, l.data)
			switch {
			case result == featurecache.Hit && l.parse(l.data[from:], func(*port, []byte) {}):
				m.hits.Add(l.counts)
				l.sent[i] = -1
			case result != featurecache.Miss:
				m.damaged.Add(l.counts)
				fallthrough
			default:
				m.misses.Add(l.counts)
				l.data = l.data[:from]
				l.missed++
			}
		}
		l.keys = append(l.keys, key)
		l.found = append(l.found, [2]int{from, len(l.data)})
	}
	return l
}

func (l *lookup) free() {
	l.slot = nil
	lookups.Put(l)
}

// hash computes the key of a row from its inputs.
func (l *lookup) hash(h hash.Hash, row int, key *featurecache.Key) {
	h.Reset()
	h.Write(l.prefix[:])
	var size [8]byte
	for i := range l.in {
		data := l.in[i].valid(l.slot, row)
		binary.LittleEndian.PutUint64(size[:], uint64(len(data)))
		h.Write(size[:])
		h.Write(data)
	}
	h.Sum(key[:0])
}

// parse calls part with each output of an entry. It reports false if the entry does not fit the bucket.
func (l *lookup) parse(entry []byte, part func(p *port, data []byte)) bool {
	for i := range l.out {
		p := &l.out[i]
		if len(entry) < 4 {
			return false
		}
		n := int(binary.LittleEndian.Uint32(entry))
		if entry = entry[4:]; n > len(entry) || !p.fits(n) {
			return false
		}
		part(p, entry[:n])
		entry = entry[n:]
	}
	return len(entry) == 0
}

// drop makes a row that the cache has one that the stage computes.
func (l *lookup) drop(row int, of int32) {
	l.found[row], l.sent[row] = [2]int{}, of
	l.missed++
	l.memo.hits.Add(-l.counts)
	l.memo.misses.Add(l.counts)
}

// hide makes the rows that the cache has empty, so that the stage computes only the others.
func (l *lookup) hide() {
	var rows []int
	for row := range l.found {
		if l.has(row) {
			rows = append(rows, row)
		}
	}
	l.aside.hide(l.slot, l.hidden, rows)
}

// has reports whether the cache has the row.
func (l *lookup) has(row int) bool { return l.found[row][0] < l.found[row][1] }

// fill writes the rows that the cache has, after the inputs that hide has saved.
func (l *lookup) fill() {
	l.aside.restore(l.slot, l.hidden)
	for row, at := range l.found {
		if !l.has(row) {
			continue
		}
		l.parse(l.data[at[0]:at[1]], func(p *port, data []byte) {
			to := p.Row(l.slot, row)
			ring.Fill(to[copy(to, data):], p.padding)
		})
	}
}

// fillEmpty writes the rows without a clip, where no stage does.
func (l *lookup) fillEmpty(rows []int32) {
	for row, of := range rows {
		if of >= 0 {
			continue
		}
		for i := range l.out {
			ring.Fill(l.out[i].Row(l.slot, row), l.out[i].padding)
		}
	}
}

// store keeps the rows that the stage has computed.
func (l *lookup) store() {
	for row, of := range l.sent {
		if of < 0 {
			continue
		}
		entry := l.data[:0] // no longer needed
		for i := range l.out {
			data := l.out[i].valid(l.slot, row)
			entry = binary.LittleEndian.AppendUint32(entry, uint32(len(data)))
			entry = append(entry, data...)
		}
		l.data = entry
		if l.memo.cache.Put(l.keys[row], entry) {
			l.memo.stored.Add(1)
		}
	}
}
