package config

import "testing"

func TestBuckets(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{"auto", "auto", ""}, {"auto:8", "auto:8", ""}, {"8", "auto:8", ""}, {"bundle", "bundle", ""},
		{"2.5s,5s,11s", "2.5s,5s,11s", ""}, {"2.5, 5, 11", "2.5s,5s,11s", ""}, {"4s", "4s", ""},
		{"0", "", "the number of buckets is 1 to 64"}, {"auto:65", "", "the number of buckets is 1 to 64"},
		{"5s,2s", "", "lengths are ascending, at most 64 of them"},
		{"auto:x", "", "must be auto, a number of buckets, bundle, or lengths in seconds such as 2.5s,5s,11s"},
		{"", "", "must be auto, a number of buckets, bundle, or lengths in seconds such as 2.5s,5s,11s"},
		{"0s", "", "must be auto, a number of buckets, bundle, or lengths in seconds such as 2.5s,5s,11s"},
		{"2,5", "", "is it 2.5s, or 2s,5s? give the unit"}, {"2s,5", "2s,5s", ""}, {"5,11", "5s,11s", ""},
		{"long", "", "must be auto, a number of buckets, bundle, or lengths in seconds such as 2.5s,5s,11s"},
	} {
		var b Buckets
		err := b.Set(tt.text)
		if err != nil && err.Error() != tt.err || err == nil && (tt.err != "" || b.String() != tt.want) {
			t.Errorf("%q: %q, %v; want %q, %q", tt.text, b.String(), err, tt.want, tt.err)
		}
		var again Buckets
		if err == nil && (again.Set(b.String()) != nil || again.String() != b.String()) {
			t.Errorf("%q is read as %q", b.String(), again.String())
		}
	}
}
