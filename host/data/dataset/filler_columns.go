package dataset

import (
	"fmt"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// readArrays reads the wanted arrays of a row. It returns false if one cannot be used.
func (f *Filler) readArrays(i int, row int32) (bool, error) {
	r := &f.ix.Rows[row]
	for k, t := range f.wanted.columns {
		if t == nil {
			continue
		}
		c := &f.ix.Columns.all[k]
		if v := r.Values[k]; c.spec.Lengths != "" && v.Length > t.Shape[1] {
			return false, fmt.Errorf("%s has %d steps of %s, but the tensor holds %d",
				r.ID, v.Length, c.spec.Column, t.Shape[1])
		}
		if c.spec.Origin != manifest.OriginFile {
			continue
		}
		var err error
		f.arrays[k], err = c.readArray(f.ix.Columns.arrays, f.ix.Dir, r.Values[k], f.arrays[k])
		if hostTrouble(err) != nil {
			return false, err
		}
		if err != nil {
			f.bad = append(f.bad,
				BadRow{Row: row, ID: r.ID, Path: r.Path, Reason: c.unreadable(r.Values[k], err), Position: i})
			return false, nil
		}
	}
	return true, nil
}

// putColumns writes the values of a row's columns.
func (f *Filler) putColumns(i int, r *Row) {
	for k, t := range f.wanted.columns {
		if t == nil {
			continue
		}
		c, rest := &f.ix.Columns.all[k], t.row(i)
		if c.spec.Origin == manifest.OriginFile {
			rest = rest[copy(rest, f.arrays[k]):]
		} else {
			rest = c.unpack(rest, r.Values[k].data)
		}
		t.pad(rest)
	}
	for k, t := range f.wanted.counters {
		if t != nil {
			t.putInt(i, r.Values[f.ix.Columns.counters[k].columns[0]].Length)
		}
	}
}
