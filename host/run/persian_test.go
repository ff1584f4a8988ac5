package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// persianBundle is pico with a tokenizer of Persian letters and byte fallback. Pico embeds 64 tokens, so 16 of them are
// shared by the 256 bytes.
func persianBundle(t *testing.T) string {
	t.Helper()
	vocab := map[string]int{"[PAD]": 0, "[UNK]": 1}
	for _, r := range "▁\u200C،.؟ءآابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیئ" {
		vocab[string(r)] = len(vocab)
	}
	if len(vocab) > 48 {
		t.Fatalf("%d tokens", len(vocab))
	}
	for b := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", b)] = 48 + b%16
	}
	tokenizer, err := json.Marshal(map[string]any{
		"pre_tokenizer": map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"},
		"model": map[string]any{
			"type": "BPE", "unk_token": "[UNK]", "byte_fallback": true, "vocab": vocab, "merges": []string{},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(tokenizer)
	dir := rebuild(t, func(m *manifest.Bundle) { m.Files["tokenizer.json"] = hex.EncodeToString(sum[:]) })
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// persianList writes a JSON Lines list of the two halves of each short clip, with texts of its own.
func persianList(t *testing.T, name, from string) string {
	t.Helper()
	// one is not composed, one has Arabic yeh and digits
	texts := []string{"سلام، حال شما؟", "می\u200Cروم به خانه.", "ا\u0653ب و نان", "علي ۱۲"}
	list, err := os.ReadFile(filepath.Join(clips, from))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	n := 0
	for line := range strings.Lines(string(list)) {
		id, _, _ := strings.Cut(line, "|")
		path := filepath.Join(clips, "wavs", id+".wav")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		half := float64(info.Size()-44) / 2 / 22050 / 2
		for _, part := range []map[string]any{{"offset": 0, "duration": half}, {"offset": half}} {
			part["audio_filepath"], part["text"], part["speaker"], part["language"] = path, texts[n%len(texts)], id[:1],
				"fa"
			data, err := json.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s\n", data)
			n++
		}
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPersian trains on texts of another script, listed as parts of recordings, and is warned which characters the
// tokenizer spells in bytes.
func TestPersian(t *testing.T) {
	dir := mustTrain(t, "--graph", persianBundle(t), "--max-steps", "16", "--eval-every", "8",
		"--train-data", persianList(t, "train.jsonl", "metadata_train.csv"), "--val-data",
		persianList(t, "eval.json", "metadata_eval.csv"))
	l := lossesOf(t, dir)
	if first, last := l[0].(float64), l[len(l)-1].(float64); !(last < first) {
		t.Errorf("loss %v -> %v", first, last)
	}
	data, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Quarantined, Samples int
		Unknown              []map[string]any `json:"unknown_characters"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if r.Quarantined != 0 || r.Samples != 64 {
		t.Errorf("%d rows in quarantine, %d samples", r.Quarantined, r.Samples)
	}
	var got []string
	for _, u := range r.Unknown {
		got = append(got, fmt.Sprint(u["split"], u["char"], u["code"], u["count"], u["first"], u["as"]))
	}
	want := []string{
		"trainيU+064A12train.jsonl:4bytes", "train۱U+06F112train.jsonl:4bytes", "train۲U+06F212train.jsonl:4bytes",
		"validationيU+064A3eval.json:4bytes", "validation۱U+06F13eval.json:4bytes",
		"validation۲U+06F23eval.json:4bytes",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("unknown characters\n%q, want\n%q", got, want)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	if err != nil || !strings.Contains(string(log), `"code":"U+064A","count":12,"first":"train.jsonl:4","as":"bytes"`) {
		t.Errorf("log.jsonl does not name them: %v\n%s", err, log)
	}
}
