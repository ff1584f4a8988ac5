package dataset

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/array/arraytest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// input declares an input from a column of its name, of shape [B, dims...].
func input(origin, name string, dtype manifest.DType, lengths string, dims ...manifest.Dim) manifest.TensorSpec {
	return manifest.TensorSpec{Name: name, DType: dtype, Origin: origin, Column: name, Lengths: lengths,
		Shape: append(manifest.Shape{manifest.Sym("B")}, dims...)}
}

// counts declares the lengths tensor of columns.
func counts(name string) manifest.TensorSpec {
	return manifest.TensorSpec{
		Name: name, DType: manifest.I32, Origin: manifest.OriginColumn, Shape: manifest.Shape{manifest.Sym("B")},
	}
}

var phones = manifest.Sym("T_phone")

// aligned declares phonemes by a vocabulary, their durations in files and in the list, and numbers of a row.
func aligned() []manifest.TensorSpec {
	phonemes := input("column", "phonemes", manifest.I32, "phoneme_lengths", phones)
	phonemes.Vocabulary, phonemes.Split, phonemes.Below, phonemes.Pad = "phonemes.json", "space", 8, -1
	durations := input("file", "durations", manifest.I32, "phoneme_lengths", phones)
	durations.Below = 100
	stress := input("column", "stress", manifest.U8, "phoneme_lengths", phones)
	return []manifest.TensorSpec{phonemes, durations, stress, counts("phoneme_lengths"),
		input("column", "loudness", manifest.F32, ""), input("column", "question", manifest.Bool, ""),
		input("column", "voice", manifest.F32, "", manifest.Fixed(3)),
		input("file", "codes", manifest.U8, "code_lengths", manifest.Sym("T_code"), manifest.Fixed(2)),
		counts("code_lengths")}
}

const speechLine = `{"audio_filepath": "1.wav", "text": "One.", "phonemes": "w ʌ n", "durations": "d/1.npy", "stress": [0, 1, 0], "loudness": -1.5, "question": true, "voice": [1, 2.5, -3e2], "codes": "codes.npy"}`

func columns(t testing.TB, inputs ...manifest.TensorSpec) *Columns {
	t.Helper()
	vocabulary := filepath.Join(t.TempDir(), "phonemes.json")
	write(t, vocabulary, []byte(`{"w": 5, "ʌ": 6, "n": 7, "t͡s": 1}`))
	c, err := NewColumns(&manifest.Bundle{Inputs: inputs}, func(string) string { return vocabulary })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rows creates a data set of JSON Lines with clips 1.wav, 2.wav, ..., and the arrays of speechLine.
func rows(t testing.TB, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := range lines {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.wav", i+1)), wavFile(22050, 1, ramp(100*i+1, 30)))
	}
	write(t, filepath.Join(dir, "train.jsonl"), []byte(strings.Join(lines, "\n")))
	write(t, filepath.Join(dir, "d/1.npy"), arraytest.Ints(4, 50, 6))
	write(t, filepath.Join(dir, "codes.npy"), []byte(arraytest.Header("|u1", "(2, 2)")+"\x01\x02\x03\x04"))
	return dir
}

// fillAll fills all tensors of columns for rows of a batch.
func fillAll(t testing.TB, f *Filler, rows ...int32) (map[string]Tensor, []BadRow) {
	t.Helper()
	var ts []Tensor
	for _, spec := range f.ix.Columns.specs {
		shape, err := spec.Shape.Resolve(map[string]int{"B": len(rows), "T_phone": 5, "T_code": 3, "T_text": 6})
		if err != nil {
			t.Fatal(err)
		}
		n := spec.DType.Size()
		for _, d := range shape {
			n *= d
		}
		ts = append(ts,
			Tensor{Name: spec.Name, DType: spec.DType, Shape: shape, Pad: spec.Pad, Data: bytes.Repeat([]byte{0xA5},
				n)})
	}
	bad := fill(t, f, Batch{Rows: rows}, ts)
	out := map[string]Tensor{}
	for _, tensor := range ts {
		out[tensor.Name] = tensor
	}
	return out, bad
}

func TestColumns(t *testing.T) {
	ix := open(t, Config{Dir: rows(t, speechLine), SampleRate: 22050, Columns: columns(t, aligned()...)})
	got, bad := fillAll(t, NewFiller(ix, NewReferences(ix, 1), nil), 0, -1)
	if bad != nil {
		t.Fatal(bad)
	}
	for _, c := range []struct {
		name string
		got  any
		want any
	}{
		{"phonemes", ints(got["phonemes"].Data), []int32{5, 6, 7, -1, -1, -1, -1, -1, -1, -1}},
		{"durations", ints(got["durations"].Data), []int32{4, 50, 6, 0, 0, 0, 0, 0, 0, 0}},
		{"stress", got["stress"].Data, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"phoneme_lengths", ints(got["phoneme_lengths"].Data), []int32{3, 0}},
		{"loudness", floats(got["loudness"].Data), []float32{-1.5, 0}},
		{"question", got["question"].Data, []byte{1, 0}},
		{"voice", floats(got["voice"].Data), []float32{1, 2.5, -300, 0, 0, 0}},
		{"codes", got["codes"].Data, []byte{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"code_lengths", ints(got["code_lengths"].Data), []int32{2, 0}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestColumnRefusals(t *testing.T) {
	change := func(key, value string) string {
		before, rest, _ := strings.Cut(speechLine, `"`+key+`": `)
		var depth, end int
		for depth, end = 0, 0; depth > 0 || rest[end] != ',' && rest[end] != '}'; end++ {
			switch rest[end] {
			case '[':
				depth++
			case ']':
				depth--
			}
		}
		if value == "" {
			return before + `"unused": 0` + rest[end:]
		}
		return before + `"` + key + `": ` + value + rest[end:]
	}
	for _, c := range []struct{ key, value, want string }{
		{"durations", "", "durations is missing"},
		{"stress", "null", "stress is missing"},
		{"phonemes", `7`, "phonemes is a number, not a list"},
		{"phonemes", `"w x n"`, `phonemes[1] is "x" (U+0078), which is not in phonemes.json`},
		{"phonemes", `["w", "th", "n"]`, `phonemes[1] is "th", which is not in phonemes.json`},
		{"phonemes", `["w", 3, "n"]`, `phonemes[1] is a number, not a symbol of phonemes.json`},
		{"phonemes", `"  "`, "phonemes is empty"},
		{"phonemes", `"w ʌ"`, "durations has the length 3, but phonemes has 2: phoneme_lengths counts both"},
		{"stress", `"010"`, "stress is a string, not a list"},
		{"stress", `[0, -1, 0]`, "stress[1] is -1, but the input takes 0 to 255"},
		{"stress", `[0, 1.0, 0]`, "stress[1] is 1.0, not an integer"},
		{"stress", `[0, [1], 0]`, "stress[1] is a list, not a number"},
		{"stress", `[0, 99999999999999999999, 0]`, "stress[1] is 99999999999999999999, beyond i32"},
		{"loudness", `1e39`, "loudness is 1e39, beyond f32"},
		{"loudness", `"1"`, "loudness is a string, not a number"},
		{"question", `1`, "question is a number, not true or false"},
		{"voice", `[1, 2]`, "voice has the length 2, but the input takes 3"},
		{"voice", `[1, 2, 3, 4]`, "voice has the length 4, but the input takes 3"},
		{"durations", `[4, 5, 6]`, "durations is a list, not the name of a file"},
		{"durations", `"d/2.npy"`, "durations: there is no d/2.npy"},
		{
			"durations", `"d/1.pt"`,
			`durations "d/1.pt": files that end in ".pt" are not read; an array is FILE.npy or FILE.safetensors#TENSOR`,
		},
		{"durations", `"codes.npy"`, "durations: the array has the shape [2 2], but a row of the input [T_phone]"},
		{"durations", `"d"`, "the file has no ending"},
		{"durations", `"folder.npy"`, "durations: "},
		{"durations", `"a\u0000.npy"`, "has a control character"},
		{"codes", `"d/1.npy"`, "codes: the array has the shape [3], but a row of the input [T_code,2]"},
		{"codes", `"float.npy"`, "codes: the array is float32, which does not become the u8 of the input"},
		{"codes", `"empty.npy"`, "codes: the array is empty"},
		{"codes", `"pickle.npy"`, "codes: the array has Python objects, which are not read; save numbers"},
	} {
		dir := rows(t, change(c.key, c.value))
		write(t, filepath.Join(dir, "float.npy"), []byte(arraytest.Header("<f4", "(1, 2)")+"12345678"))
		write(t, filepath.Join(dir, "empty.npy"), []byte(arraytest.Header("|u1", "(0, 2)")))
		write(t, filepath.Join(dir, "pickle.npy"), []byte(arraytest.Header("|O", "(1, 2)")+"cos\nsystem"))
		if err := os.Mkdir(filepath.Join(dir, "folder.npy"), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := Open(context.Background(), Config{Dir: dir, SampleRate: 22050, Columns: columns(t, aligned()...)})
		contains(t, err, "train.jsonl:1) because: ")
		contains(t, err, c.want)
	}
	_, err := Open(context.Background(),
		Config{Dir: folder(t, "a|b"), SampleRate: 22050, Columns: columns(t, aligned()...)})
	contains(t, err, "metadata.csv: the model takes phonemes, durations, stress, loudness, question, voice, codes "+
		"from the list, which this format cannot have")
}

// TestColumnsAreText: ids by character may share the lengths of the text, and a column may be a key that the host
// knows.
func TestColumnsAreText(t *testing.T) {
	letters := input("column", "letters", manifest.I32, "text_lengths", manifest.Sym("T_text"))
	letters.Column, letters.Vocabulary, letters.Split = "text", "phonemes.json", "character"
	voice := input("column", "voice_id", manifest.I32, "")
	voice.Column, voice.Vocabulary = "speaker", "phonemes.json"
	text := manifest.TensorSpec{
		Name: "text_lengths", DType: manifest.I32, Origin: "dataset", Shape: manifest.Shape{manifest.Sym("B")},
	}
	cfg := Config{SampleRate: 22050, Tokenizer: testTokenizer(t), Columns: columns(t, letters, voice, text)}
	cfg.Dir = rows(t, `{"audio_filepath": "1.wav", "text": "nw", "speaker": "t͡s"}`,
		`{"audio_filepath": "2.wav", "text": " nw", "speaker": "w"}`)
	ix := open(t, cfg)
	got, _ := fillAll(t, NewFiller(ix, NewReferences(ix, 1), nil), 0)
	l, v := ints(got["letters"].Data), ints(got["voice_id"].Data)
	if !reflect.DeepEqual(l, []int32{7, 5, 0, 0, 0, 0}) || v[0] != 1 {
		t.Errorf("letters %v, voice %v", l, v)
	}
	if len(ix.Rejected) != 1 || ix.Rejected[0].Reason != `text[0] is " " (U+0020), which is not in phonemes.json` {
		t.Errorf("%+v", ix.Rejected)
	}
}

// TestArraysOfARun: an array that changes after the index, or has a value that the model cannot take, empties its row.
func TestArraysOfARun(t *testing.T) {
	dir := rows(t, speechLine, strings.Replace(speechLine, "1.wav", "2.wav", 1),
		strings.Replace(speechLine, "1.wav", "3.wav", 1))
	list := strings.ReplaceAll(string(must(os.ReadFile(filepath.Join(dir, "train.jsonl")))),
		`3.wav", "text": "One.", "phonemes": "w ʌ n", "durations": "d/1.npy"`,
		`3.wav", "text": "One.", "phonemes": "w ʌ n", "durations": "d/3.npy"`)
	list = strings.ReplaceAll(list, `2.wav", "text": "One.", "phonemes": "w ʌ n", "durations": "d/1.npy"`,
		`2.wav", "text": "One.", "phonemes": "w ʌ n", "durations": "d/2.npy"`)
	write(t, filepath.Join(dir, "train.jsonl"), []byte(list))
	write(t, filepath.Join(dir, "d/2.npy"), arraytest.Ints(1, 100, 2))
	write(t, filepath.Join(dir, "d/3.npy"), arraytest.Ints(1, 2, 3))
	ix := open(t, Config{Dir: dir, SampleRate: 22050, Columns: columns(t, aligned()...)})
	write(t, filepath.Join(dir, "d/3.npy"), arraytest.Ints(1, 2, 3, 4))
	got, bad := fillAll(t, NewFiller(ix, NewReferences(ix, 1), nil), 0, 1, 2)
	var reasons []string
	for _, b := range bad {
		reasons = append(reasons, fmt.Sprintf("%d %s: %s", b.Position, b.ID, b.Reason))
	}
	want := []string{"1 2.wav: durations: d/2.npy: value 1 is 100, but the input takes 0 to 99",
		"2 3.wav: durations: d/3.npy: changed since it was indexed: it had the length 3"}
	if !reflect.DeepEqual(reasons, want) {
		t.Errorf("%q", reasons)
	}
	if l := ints(got["phoneme_lengths"].Data); !reflect.DeepEqual(l, []int32{3, 0, 0}) {
		t.Errorf("lengths %v", l)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestColumnCache: known arrays are not opened again, and the identity of the data has the columns' values.
func TestColumnCache(t *testing.T) {
	dir, cache := rows(t, speechLine), t.TempDir()
	cfg := Config{Dir: dir, SampleRate: 22050, CacheDir: cache, Columns: columns(t, aligned()...)}
	identity := func() string {
		t.Helper()
		ix := open(t, cfg)
		if err := ix.ReadContents(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		return ix.Hash() + ix.Contents
	}
	first := identity()
	ix := open(t, cfg)
	if !ix.Cached || ix.Rows[0].Values[1].Length != 3 || identity() != first {
		t.Errorf("cached %v, %+v", ix.Cached, ix.Rows[0].Values)
	}
	write(t, filepath.Join(dir, "d/1.npy"), arraytest.Ints(4, 51, 6))
	if ix := open(t, cfg); ix.Cached {
		t.Error("a changed array is known")
	}
	changed := identity()
	write(t, filepath.Join(dir, "train.jsonl"), []byte(strings.Replace(speechLine, "-1.5", "1.5", 1)))
	if other := identity(); changed == first || other == changed || other == first {
		t.Error("a changed value has the identity of another")
	}
	// Another type of the same file is checked again.
	inputs := aligned()
	inputs[1].DType = manifest.F32
	inputs[1].Below = 0
	cfg.Columns = columns(t, inputs...)
	_, err := Open(context.Background(), cfg)
	contains(t, err, "durations: the array is int32, which does not become the f32 of the input")
}

func TestColumnBuckets(t *testing.T) {
	list := []string{speechLine, strings.NewReplacer("1.wav", "2.wav", `"w ʌ n"`, `"w w w w"`, "d/1.npy", "d/4.npy",
		"[0, 1, 0]", "[0, 0, 0, 0]").Replace(
		speechLine)}
	dir := rows(t, list...)
	write(t, filepath.Join(dir, "d/4.npy"), arraytest.Ints(1, 2, 3, 4))
	ix := open(t, Config{Dir: dir, SampleRate: 22050, Columns: columns(t, aligned()...)})
	p, err := NewPlan(ix.Rows, PlanConfig{
		BatchSize: 1, Buckets: []manifest.Bucket{{"T_phone": 2, "T_code": 2}, {"T_phone": 3, "T_code": 2}},
		Columns: ix.Columns,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Excluded{{1, "T_phone", "steps of phonemes", 3, "4 steps of phonemes, but the bucket holds 3"}}
	if p.Bucket(0) != 1 || !reflect.DeepEqual(p.Excluded(), want) {
		t.Errorf("bucket %d, excluded %+v", p.Bucket(0), p.Excluded())
	}
	b := dynamic()
	b.Buckets, b.Dynamic = []manifest.Bucket{{"T_wav": 80, "T_phone": 2, "T_code": 9}},
		manifest.Bucket{"T_wav": 400, "T_phone": 4}
	b.Inputs = aligned()
	got := Buckets(ix.Rows, BucketConfig{Bundle: b, BatchSize: 1, Columns: ix.Columns})
	if want := []manifest.Bucket{{"T_wav": 30, "T_phone": 4, "T_code": 9}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestVocabulary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "v.json")
	spec := input("column", "x", manifest.I32, "x_lengths", phones)
	spec.Vocabulary, spec.Below = "v.json", 3
	for _, c := range []struct{ split, content, want string }{
		{"", `{"a": 0, "b c": 2}`, ""},
		{"", `{"a": 3}`, `v.json: the id of "a" is 3, but the input takes 0 to 2`},
		{"", `{"a": -1}`, `the id of "a" is -1`},
		{"", `{"a": 1.5}`, "v.json: not an object of symbols"},
		{"", `["a"]`, "v.json: not an object of symbols"},
		{"", `{}`, "v.json: not an object of symbols"},
	} {
		write(t, file, []byte(c.content))
		spec.Split = c.split
		_, err := NewColumns(&manifest.Bundle{Inputs: []manifest.TensorSpec{spec, counts("x_lengths")}},
			func(string) string { return file })
		contains(t, err, c.want)
	}
	for _, c := range []struct {
		name, lengths, want string
	}{
		{"waveform", "x_lengths", "has the name of a tensor that the host makes"},
		{"x", "reference_lengths", "the lengths reference_lengths are not those of a clip or its text"},
	} {
		reference := counts("reference_lengths")
		reference.Origin = "dataset"
		_, err := NewColumns(&manifest.Bundle{Inputs: []manifest.TensorSpec{
			input("column", c.name, manifest.I32, c.lengths, phones), counts("x_lengths"), reference,
		}}, nil)
		contains(t, err, c.want)
	}
}

// For any line, what is accepted unpacks to as many values as its length says.
func FuzzColumns(f *testing.F) {
	for _, s := range []string{
		speechLine, strings.Replace(speechLine, `"w ʌ n"`, `["w", "\u028c", "t͡s"]`, 1),
		strings.Replace(speechLine, "-1.5", "[[-1e38]]", 1),
		strings.Replace(speechLine, "codes.npy", "a.safetensors#b", 1),
		`{"phonemes": "w", "phonemes": null, "stress": [ 1 ,2], "voice": {}}`,
	} {
		f.Add(s)
	}
	c := columns(f, aligned()...)
	parse := objects("/data", c)
	f.Fuzz(func(t *testing.T, line string) {
		e, err := parse([]byte(line))
		if err != nil || e.reason != "" {
			return
		}
		for i, v := range e.values {
			n := c.all[i].spec.DType.Size() * max(v.Length, 1)
			for _, d := range c.all[i].inner {
				n *= d
			}
			if c.all[i].spec.Origin == manifest.OriginFile {
				arrayOf("/data", v)
			} else if rest := c.all[i].unpack(make([]byte, n), v.data); len(rest) > 0 {
				t.Errorf("%s: %d of %d bytes are missing", c.all[i].spec.Name, len(rest), n)
			}
		}
	})
}
