package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOpen(t *testing.T) {
	dir := folder(t, "A/1|one", "B/1|two|Two!", "A/2|ñandú, ño", "solo|on its own")
	clip(t, dir, "A/1", 22050, 1, ramp(0, 100))
	clip(t, dir, "B/1", 44100, 2, ramp(0, 402)) // 201 frames
	clip(t, dir, "A/2", 16000, 1, ramp(0, 160))
	clip(t, dir, "solo", 22050, 1, ramp(0, 7))
	ix := open(t, Config{Dir: dir, SampleRate: 22050, Tokenizer: testTokenizer(t), Speakers: []string{"Z", "B"}})

	var got []string
	for _, r := range ix.Rows {
		got = append(got, fmt.Sprintf("%s %s %q %d/%d x%d = %d, %d tokens, speaker %q=%d, %s=%d", r.ID,
			strings.TrimPrefix(r.Path, dir), r.Text, r.Frames, r.FileRate, r.FileChannels, r.Samples, r.Tokens,
			ix.Speakers[r.SpeakerID], r.SpeakerID, ix.Languages[r.LanguageID], r.LanguageID))
	}
	want := []string{
		`A/1 /wavs/A/1.wav "one" 100/22050 x1 = 100, 3 tokens, speaker "A"=2, en=0`,
		`B/1 /wavs/B/1.wav "Two!" 201/44100 x2 = 101, 4 tokens, speaker "B"=1, en=0`,
		`A/2 /wavs/A/2.wav "ñandú, ño" 160/16000 x1 = 221, 9 tokens, speaker "A"=2, en=0`,
		`solo /wavs/solo.wav "on its own" 7/22050 x1 = 7, 10 tokens, speaker ""=3, en=0`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	unknown := []UnknownChar{{'ñ', 2, "metadata.csv:3", 0}, {'ú', 1, "metadata.csv:3", 0}}
	if !reflect.DeepEqual(ix.Unknown, unknown) {
		t.Errorf("unknown characters %v, want %v", ix.Unknown, unknown)
	}
	if !reflect.DeepEqual(ix.Speakers, []string{"Z", "B", "A", ""}) {
		t.Errorf("speakers %q", ix.Speakers)
	}
}

// TestShortestClip: a clip shorter than the window of the features is rejected, at the index's sample rate.
func TestShortestClip(t *testing.T) {
	dir := folder(t, "one|text", "below|text", "at|text", "half|text")
	for id, n := range map[string]int{"one": 1, "below": 99, "at": 100} {
		clip(t, dir, id, 22050, 1, ramp(0, n))
	}
	clip(t, dir, "half", 44100, 1, ramp(0, 150))
	ix := open(t, Config{Dir: dir, SampleRate: 22050, MinSamples: 100})
	var got []string
	for _, r := range ix.Rejected {
		got = append(got, r.ID+": "+r.Reason)
	}
	const rest = " samples at 22050 Hz, fewer than the 100 of one window of the features"
	want := []string{"one: the clip has 1" + rest, "below: the clip has 99" + rest, "half: the clip has 75" + rest}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("rejected %q, want %q", got, want)
	}
}

// saved is the advice for a WAV file of which most is missing.
func saved(dir, id string) string {
	path := filepath.Join(dir, "wavs", id)
	return "; copy the recording from its source again, or save what is there: ffmpeg -i " + path +
		".wav -c:a pcm_s24le " + path + ".new.wav && mv " + path + ".new.wav " + path + ".wav"
}

func TestOpenRejects(t *testing.T) {
	dir := folder(t, "good|text", "missing|text", "broken|text", "silent|text", "no columns", "pipe|text", "untold|",
		"blank|\u200b", "closed|text")
	for _, id := range []string{"good", "untold"} {
		clip(t, dir, id, 22050, 1, ramp(0, 10))
	}
	clip(t, dir, "silent", 22050, 1, nil)
	clip(t, dir, "blank", 22050, 1, ramp(0, 10))
	write(t, filepath.Join(dir, "wavs", "broken.wav"), wavFile(22050, 1, ramp(0, 100))[:142])
	if err := syscall.Mkfifo(filepath.Join(dir, "wavs", "pipe.wav"), 0o600); err != nil {
		t.Fatal(err)
	}
	clip(t, dir, "closed", 22050, 1, ramp(0, 10))
	if err := os.Chmod(filepath.Join(dir, "wavs", "closed.wav"), 0); err != nil {
		t.Fatal(err)
	}
	ix := open(t, Config{Dir: dir, SampleRate: 22050, Tokenizer: testTokenizer(t)})
	got := map[string]string{}
	for _, r := range ix.Rejected {
		got[ix.Place(r.Line)] = r.ID + ": " + r.Reason
	}
	want := map[string]string{
		"metadata.csv:2": "missing: there is no wavs/missing.wav, .flac, .ogg, .opus, .mp3 or .oga",
		"metadata.csv:3": `broken: truncated: the "data" chunk declares 200 bytes, but the file has 98` + saved(dir,
			"broken"),
		"metadata.csv:4": "silent: the audio has no samples",
		"metadata.csv:5": ": no '|' between id and text",
		"metadata.csv:6": "pipe: a named pipe, not a regular file",
		"metadata.csv:7": "untold: the text is empty",
	}
	rows := 2
	if os.Geteuid() == 0 {
		rows++ // root can read everything
	} else {
		want["metadata.csv:9"] = "closed: open: permission denied"
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if len(ix.Rows) != rows || ix.Rows[0].ID != "good" {
		t.Errorf("rows %v", ix.Rows)
	}
}

func TestOpenFails(t *testing.T) {
	tok := testTokenizer(t)
	for _, c := range []struct{ name, dir, err, hint string }{
		{"no folder", filepath.Join(t.TempDir(), "none"), "there is no such folder or file", "a data set is a folder"},
		{"no list", t.TempDir(), "neither metadata_train.csv nor metadata.csv exists", "a data set is a folder"},
		{
			"nothing usable", folder(t, "1|one", "2|two"),
			"no usable row: all 2 lines are rejected, the first (metadata.csv:1) because: there is no wavs/1.wav",
			"wavs/<id>.wav",
		},
		{"empty list", folder(t), "metadata.csv: no usable row", ""},
		{"duplicate", folder(t, "1|one", "1|two"), "metadata.csv:2: id \"1\"", "give it another id"},
	} {
		_, err := Open(context.Background(), Config{Dir: c.dir, SampleRate: 22050, Tokenizer: tok})
		contains(t, err, c.err)
		contains(t, err, c.dir)
		var h interface{ Hint() string }
		if errors.As(err, &h) != (c.hint != "") || h != nil && !strings.Contains(h.Hint(), c.hint) {
			t.Errorf("%s: hint of %v, want %q", c.name, err, c.hint)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := folder(t, "1|one")
	clip(t, dir, "1", 22050, 1, ramp(0, 10))
	if _, err := Open(ctx, Config{Dir: dir, SampleRate: 22050}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSplits(t *testing.T) {
	dir := folder(t, "1|all", "2|all")
	for _, id := range []string{"1", "2"} {
		clip(t, dir, id, 22050, 1, ramp(0, 10))
	}
	list := func(s Split) string { return open(t, Config{Dir: dir, Split: s, SampleRate: 22050}).List }
	if has, err := HasEval(dir, false); has || err != nil {
		t.Errorf("HasEval = %v, %v", has, err)
	}
	if got := list(Train) + " " + list(Eval); got != "metadata.csv metadata.csv" {
		t.Errorf("lists %s", got)
	}
	write(t, filepath.Join(dir, "metadata_train.csv"), []byte("1|train\n"))
	write(t, filepath.Join(dir, "metadata_eval.csv"), []byte("2|eval\n"))
	if has, err := HasEval(dir, false); !has || err != nil {
		t.Errorf("HasEval = %v, %v", has, err)
	}
	if got := list(Train) + " " + list(Eval); got != "metadata_train.csv metadata_eval.csv" {
		t.Errorf("lists %s", got)
	}
}

func TestCache(t *testing.T) {
	dir := folder(t, "A/1|one ñ", "2|two", "3|missing")
	clip(t, dir, "A/1", 44100, 1, ramp(0, 100))
	clip(t, dir, "2", 22050, 1, ramp(0, 50))
	cfg := Config{Dir: dir, SampleRate: 22050, Tokenizer: testTokenizer(t), CacheDir: filepath.Join(t.TempDir(),
		"cache")}
	first := open(t, cfg)
	file := first.recordings.file.Path
	again := func(what string, cached bool) {
		t.Helper()
		ix := open(t, cfg)
		if ix.Cached != cached {
			t.Errorf("%s: cached is %v", what, ix.Cached)
		}
		plain := cfg
		plain.CacheDir = ""
		want := open(t, plain)
		if !reflect.DeepEqual(ix.Rows, want.Rows) || !reflect.DeepEqual(ix.Rejected, want.Rejected) ||
			!reflect.DeepEqual(ix.Unknown, want.Unknown) {
			t.Errorf("%s: the cache gives %+v, the files %+v", what, ix, want)
		}
	}
	if first.Cached || first.CacheError != nil {
		t.Errorf("first: cached %v, error %v", first.Cached, first.CacheError)
	}
	again("unchanged", true)

	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(good); i += 7 {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x40
		write(t, file, bad)
		if ix := open(t, cfg); ix.Cached {
			t.Fatalf("damage at byte %d of %d was not detected", i, len(good))
		}
	}
	write(t, file, good[:len(good)/2])
	if ix := open(t, cfg); ix.Cached || ix.CacheError == nil || !strings.Contains(ix.CacheError.Error(), "damaged") {
		t.Errorf("truncated: cached %v, error %v", ix.Cached, ix.CacheError)
	}
	again("rebuilt", true)
	write(t, file, append([]byte("xtts-host recordings 1\n"), good[len(recordingsMark):]...))
	again("the lengths of another version", false)

	clip(t, dir, "2", 22050, 1, ramp(0, 51))
	again("another size", false)
	if err := os.Chtimes(filepath.Join(dir, "wavs", "2.wav"), time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	again("another time", false)
	clip(t, dir, "3", 22050, 1, ramp(0, 5))
	again("no longer missing", false)
	write(t, filepath.Join(dir, "metadata.csv"), []byte("A/1|other text\n3|three\n2|two\n"))
	again("another list of the same recordings", true)
	cfg.SampleRate, cfg.MinSamples = 16000, 10
	again("another rate", true)

	cfg.CacheDir = file // a file, not a folder
	if ix := open(t, cfg); ix.CacheError == nil || len(ix.Rows) != 2 {
		t.Errorf("without a folder: %d rows, error %v", len(ix.Rows), ix.CacheError)
	}
}

func TestHash(t *testing.T) {
	make := func(text string, samples int) string {
		dir := folder(t, "A/1|"+text)
		clip(t, dir, "A/1", 22050, 1, ramp(0, samples))
		return open(t, Config{Dir: dir, SampleRate: 22050, Tokenizer: testTokenizer(t)}).Hash()
	}
	if one, other := make("a", 10), make("a", 10); one != other {
		t.Error("equal data in two folders have two hashes")
	}
	if make("a", 10) == make("b", 10) || make("a", 10) == make("a", 11) {
		t.Error("different data have one hash")
	}
}

// TestCacheReadsAgain: a file that could not be used is read again at each start, because a change of permissions
// changes neither its size nor its time.
func TestCacheReadsAgain(t *testing.T) {
	dir := folder(t, "1|one", "2|two")
	clip(t, dir, "1", 22050, 1, ramp(0, 50))
	write(t, filepath.Join(dir, "wavs", "2.wav"), []byte("not audio"))
	cfg := Config{Dir: dir, SampleRate: 22050, CacheDir: filepath.Join(t.TempDir(), "cache")}
	first := open(t, cfg)
	if len(first.Rejected) != 1 || len(first.recordings.all) != 1 {
		t.Errorf("rejected %v, known %v", first.Rejected, first.recordings.all)
	}
	if again := open(t, cfg); !again.Cached || !reflect.DeepEqual(again.Rejected, first.Rejected) {
		t.Errorf("%+v, then %+v", first, again)
	}
}

// TestOddRate: any rate is read, and its filter does not exhaust memory.
func TestOddRate(t *testing.T) {
	dir := folder(t, "1|one", "2|two", "3|three")
	clip(t, dir, "1", 22050, 1, ramp(0, 50))
	clip(t, dir, "2", 383989, 1, ramp(0, 50))
	clip(t, dir, "3", 22051, 1, ramp(0, 50))
	ix := open(t, Config{Dir: dir, SampleRate: 22050})
	if len(ix.Rows) != 3 || ix.Rows[1].Samples != 3 || ix.Rows[2].Samples != 50 {
		t.Fatalf("%+v, rejected: %+v", ix.Rows, ix.Rejected)
	}
	for i := range ix.Rows {
		if err := NewDecoder(22050).Decode(make([]float32, ix.Rows[i].Samples), &ix.Rows[i], 0); err != nil {
			t.Error(err)
		}
	}
}
