package config

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64 // 0: refused
		back string
	}{
		{"1", 1 << 20, "1MiB"}, {"1MB", 1e6, "1MB"}, {"1.5", 3 << 19, "1.5MiB"}, {"16384", 16 << 30, "16GiB"},
		{"1KiB", 1 << 10, "1KiB"}, {"1MiB", 1 << 20, "1MiB"}, {"16GiB", 16 << 30, "16GiB"},
		{"2TiB", 2 << 40, "2048GiB"}, {"1KB", 1e3, "1KB"}, {"1GB", 1e9, "1GB"}, {"1 GiB", 1 << 30, "1GiB"},
		{"1e3MB", 1e9, "1GB"}, {"", 0, ""}, {"0", 0, ""}, {"-1", 0, ""}, {"0.0000001", 0, ""}, {"NaN", 0, ""},
		{"inf", 0, ""}, {"GiB", 0, ""}, {"1gib", 0, ""}, {"1PiB", 0, ""}, {"99999999TiB", 0, ""}, {"auto", 0, ""},
	} {
		var b Bytes
		err := b.Set(tt.text)
		switch {
		case err != nil && tt.want != 0:
			t.Errorf("%q: %v", tt.text, err)
		case err == nil && tt.want == 0:
			t.Errorf("%q: accepted as %d", tt.text, b)
		case err == nil && (int64(b) != tt.want || b.String() != tt.back):
			t.Errorf("%q is %d, printed %s; want %d, %s", tt.text, b, b.String(), tt.want, tt.back)
		}
	}
}

func TestBytesReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		b := Bytes(1 + r.Int64N(1<<(1+r.UintN(52))))
		var again Bytes
		if err := again.Set(b.String()); err != nil || again != b {
			t.Fatalf("%d is printed %s and read as %d, %v", b, b.String(), again, err)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Limit
		back string
	}{{"auto", 0, "auto"}, {"8192", 8 << 30, "8GiB"}, {"16GiB", 16 << 30, "16GiB"}, {"100", 100 << 20, "100MiB"}} {
		l := Limit(5)
		if err := l.Set(tt.text); err != nil || l != tt.want || l.String() != tt.back {
			t.Errorf("%q is %d, printed %s, %v", tt.text, l, l.String(), err)
		}
	}
	for _, text := range []string{"", "0", "-1", "Auto", "lots"} {
		if l := Limit(5); l.Set(text) == nil || l != 5 {
			t.Errorf("%q: accepted, or the value is gone: %d", text, l)
		}
	}
}

func TestAuto(t *testing.T) {
	for text, want := range map[string]SlotCount{"auto": 0, "2": 2, "8": 8} {
		a := SlotCount(5)
		if err := a.Set(text); err != nil || a != want || a.String() != text {
			t.Errorf("%q is %d, printed %s, %v", text, a, a.String(), err)
		}
	}
	for _, text := range []string{"", "0", "1", "9", "-2", "x", "3.0"} {
		if a := SlotCount(5); a.Set(text) == nil || a != 5 {
			t.Errorf("%q: accepted, or the value is gone: %d", text, a)
		}
	}
}

func TestWorkers(t *testing.T) {
	var w workers
	for _, text := range []string{"", "a=1", "b=2,c=3", "a=4"} {
		if err := w.Set(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if w.String() != "a=4,b=2,c=3" {
		t.Errorf("printed %s", w.String())
	}
	for _, text := range []string{"a", "a=", "=1", "a=0", "a=-1", "a=x", "a=1,", "a=1.5", "a=9999"} {
		if err := w.Set(text); err == nil || !strings.Contains(err.Error(), "is not ID=N") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
