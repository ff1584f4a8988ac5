package manifest

import (
	"strings"
	"testing"
)

// TestColumnInputs: what the host cannot make of a column is refused with the input's name.
func TestColumnInputs(t *testing.T) {
	input := func(keys ...any) map[string]any {
		in := map[string]any{
			"name": "phones", "dtype": "i32", "shape": []any{"B", "T_text"}, "lengths": "phone_lengths",
			"origin": "column", "column": "phones",
		}
		for i := 0; i < len(keys); i += 2 {
			if in[keys[i].(string)] = keys[i+1]; keys[i+1] == nil {
				delete(in, keys[i].(string))
			}
		}
		return in
	}
	counts := map[string]any{"name": "phone_lengths", "dtype": "i32", "shape": []any{"B"}, "origin": "column"}
	change := func(key string, value any) map[string]any {
		m := map[string]any{"name": "phone_lengths", "dtype": "i32", "shape": []any{"B"}, "origin": "column"}
		m[key] = value
		return m
	}
	for _, c := range []struct {
		name       string
		in, counts map[string]any
		want       string
	}{
		{"all keys", input("vocabulary", "phones.json", "split", "space", "below", 9), counts, ""},
		{
			"numbers in files", input("dtype", "f32", "shape", []any{"B", "T_text", 80}, "origin", "file"),
			change("origin", "file"), "",
		},
		{"unknown split", input("split", "comma"), counts, "bundle.json: inputs.0.split: "},
		{"path", input("vocabulary", "../x"), counts, "bundle.json: inputs.0.vocabulary: "},
		{
			"column of another origin", input("origin", "dataset"), counts,
			`inputs: "phones" of origin dataset has column, vocabulary, split or below`,
		},
		{"type", input("dtype", "i64"), counts, `inputs: "phones" of origin column is i64: the host makes`},
		{"pad of u8", input("dtype", "u8", "pad", 256), counts, "has pad 256, which u8 cannot hold"},
		{"pad of i32", input("pad", -0.5), counts, "has pad -0.5, which i32 cannot hold"},
		{"pad of f32", input("dtype", "f32", "pad", 1e39), counts, "has pad 1e+39, which f32 cannot hold"},
		{"pad of bool", input("dtype", "bool", "pad", 1), counts, ""},
		{"below of floats", input("dtype", "f32", "below", 3), counts, "below is for i32 and u8"},
		{"vocabulary of u8", input("dtype", "u8", "vocabulary", "v.json"), counts, "the ids of a vocabulary are i32"},
		{
			"vocabulary of files", input("origin", "file", "vocabulary", "v.json"), counts,
			"symbols are in the list itself",
		},
		{"split of numbers", input("split", "space"), counts, "has split: only symbols"},
		{
			"split of one", input("split", "space", "vocabulary", "v.json", "shape", []any{"B"}, "lengths", nil),
			counts, "has split: only symbols",
		},
		{"no rows", input("shape", []any{"T_text"}), counts, "has the shape [T_text]: the first dimension is B"},
		{
			"without lengths", input("lengths", nil), counts,
			"has the shape [B,T_text]: a symbol in axis 1 needs lengths",
		},
		{
			"fixed with lengths", input("shape", []any{"B", 3}), counts,
			"has the shape [B,3]: lengths need a symbol in axis 1",
		},
		{"second symbol", input("shape", []any{"B", "T_text", "T_text"}), counts, "only axis 1 may have a symbol"},
		{"lengths in a column", input(), change("column", "n"), `has the lengths "phone_lengths", which is a column`},
		{
			"lengths of nothing", input("lengths", "text_lengths"), counts,
			`"phone_lengths" of origin column names no column, and is not the i32[B] lengths`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := edit(t, read(t, pico), []any{c.in, c.counts, map[string]any{
				"name": "text_lengths", "dtype": "i32", "shape": []any{"B"}, "origin": "dataset",
			}}, "inputs")
			_, err := ParseBundle("bundle.json", data)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	// Dynamic may have the symbol of a column, and no other.
	data := edit(t, read(t, pico), []any{input("shape", []any{"B", "T_ref_mel"}), counts}, "inputs")
	limits := map[string]any{"T_text": 100, "T_wav": 88064, "T_ref_mel": 500}
	if _, err := ParseBundle("bundle.json", edit(t, data, limits, "dynamic")); err != nil {
		t.Error(err)
	}
	_, err := ParseBundle("bundle.json", edit(t, read(t, pico), limits, "dynamic"))
	if err == nil || !strings.Contains(err.Error(), "dynamic: the host cannot count T_ref_mel") {
		t.Error(err)
	}
}
