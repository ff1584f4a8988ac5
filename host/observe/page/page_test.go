package page

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/page/pagetest"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

// runOf makes a run folder with these files.
func runOf(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Läufe 1", "first")
	for name, text := range content {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// whole has all files of a small run. Steps: 4, 2 and 3 frames in 500, 40 and 60 ms.
func whole() map[string]string {
	return map[string]string{
		"metrics.jsonl": `{"step":1,"loss":4,"lr":0.1,"grad_norm":1,"step_ms":500,"input_wait_ms":0,"samples":2,"frames":4}
{"step":2,"loss":3,"lr":0.1,"grad_norm":1,"step_ms":40,"input_wait_ms":20,"samples":2,"frames":2}
{"step":3,"loss":2,"lr":0.1,"grad_norm":1,"step_ms":60,"input_wait_ms":40,"samples":2,"frames":3}
`,
		"eval.jsonl": `{"step":1,"loss":5,"mel_loss":0.5,"samples":6,"eval_ms":9.5}
{"step":2,"loss":3.5,"mel_loss":0.3,"samples":6,"eval_ms":9.5}
{"step":3,"loss":3.75,"mel_loss":0.4,"samples":6,"eval_ms":9.5}
`,
		"config.yaml": "batch_size: 2  # flag\nlr: 0.1  # default\n",
		"report.json": `{"bundle":"nano","device":"cpu","precision":"f32","outcome":"done","steps":3,"wall_s":62.4,
			"steps_per_second":20,"frames_per_second":50,"input_stall_ratio":0.6,"step_ms":{"steps":2,"mean":50,"std":10,
			"variation":0.2,"by_bucket":{"1":{"steps":2,"mean":50}}},"phases_ms":{"decode":7,"wait":30,"train":15,"other":5},
			"memory":[{"device":"GPU 0","role":"model","limit_bytes":17179869184,"arena_peak_bytes":2147483648,"process_peak_bytes":8589934592}],
			"utilization":[{"device":"GPU 0","role":"model","mean":0.85,"std":0.1,"samples":9}],
			"plugins":[{"id":"features","workers":2,"restarts":1,"calls":1384,"p50_ms":26.2,"p99_ms":92.3}],
			"data":{"train":{"clips":24,"seconds":45.6,"left_out":[{"reason":"too long","file":"excluded.jsonl","clips":3,"seconds":60}]},
			"padding":{"share":0.143}},"warnings":["slow disk"],"versions":{"go":"1.26"},
			"verdict":{"bottleneck":"decode","advice":["Raise --num-workers."]}}`,
		"spoken.jsonl": spokenLine(1, 1, 8, true) + spokenLine(2, 1, 6, false) + spokenLine(2, 2, 4, true) +
			spokenLine(3, 1, 5, true),
		"quarantine.jsonl":                 `{"id":"LJ-1","reason":"silent","stage":"decode"}` + "\n",
		"samples/step-000001/clip-1.wav":   pagetest.Wave,
		"samples/step-000002/clip-1.wav":   pagetest.Wave,
		"samples/step-000003/clip-1.wav":   pagetest.Wave,
		"samples/reference/clip-1.wav":     pagetest.Wave,
		"samples/step-000003/clip-1.png":   png,
		"samples/step-000002/clip-1.png":   "no picture",
		"probes/step-000003/attention.png": png,
		"probes.jsonl": `{"step":3,"name":"attention","shape":[4,33],"mean":0.5,"std":1,"min":0,"max":1,"norm":2,"not_finite":0,"counts":[10,30],` +
			`"picture":"probes/step-000003/attention.png"}` + "\n",
	}
}

const png = "\x89PNG\r\n\x1a\nrest"

func spokenLine(step, clip int, mcd float64, ended bool) string {
	return fmt.Sprintf(`{"step":%d,"clip":%d,"id":"LJ-%d","text":"سلام 你好","language":"fa","file":"samples/step-%06d/clip-%d.wav",`+
		`"reference":"samples/reference/clip-1.wav","picture":"samples/step-%06d/clip-%d.png","seconds":1.5,"ended":%v,`+
		`"measures":{"mcd_db":%g,"wer":0.25}}`+"\n", step, clip, clip, step, clip, step, clip, ended, mcd)
}

var spaces = regexp.MustCompile(`\s+`)

// shownBy is the text that a page shows, with a space between all parts.
func shownBy(t *testing.T, page []byte) string {
	t.Helper()
	text := strings.NewReplacer("<wbr>", "", "</span>", "</span>", "<", " <").Replace(string(page))
	return spaces.ReplaceAllString(strings.ReplaceAll(pagetest.Check(t, text), "\u00a0", " "), " ")
}

func TestPage(t *testing.T) {
	dir := runOf(t, whole())
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, rundir.PageFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`<h3 dir="auto" lang="fa">سلام 你好</h3>`)) {
		t.Error("a text has not its language")
	}
	shown := shownBy(t, text)
	last := 0
	for _, want := range []string{
		"Run first done", "nano, cpu, f32 , last written",
		"The run is done, after 3 steps. Limited by: decode, which training waits for. Speech after step 3: the " +
			"model ended the text, MCD 5.0 dB, word errors 25 %. Speech breaks after step 2, although the loss is " +
			"the lowest so far: clip 1 was cut after 1.5 s. The best checkpoint is that of the lowest loss. " +
			"--best-by spoken.mcd_db chooses it by the speech (docs/schedules.md). Raise --num-workers.",
		"steps 3 none skipped", "training loss 4.000 → 2.000 lowest 2.000", "best evaluation 3.500 step 2",
		"speed 1,200 steps/min 20.0 steps/s", "frames 50.0 /s 9 in all", "wall time 1 min 02 s", "input stall 60 %",
		"step time 50.0 ms ± 10.0 ms, variation 20 %", "samples 6 clips trained on",
		"3 evaluations on validation data evaluation first (step 1) best (step 2) last (step 3) loss 5.000 3.500 " +
			"3.750 mel_loss 0.500 0.300 0.400",
		"Loss",
		"Training loss from 4.000 to 2.000, the lowest 2.000 at step 3. 3 evaluations, the best loss 3.500 at " +
			"step 2, the last 3.750.",
		"spoken with the weights of step 1 (first), step 2 (best), step 3 (last)",
		"Means over the texts measure step 1 (first) step 2 (best) step 3 (last) cut 0 of 1 1 of 2 0 of 1 " +
			"MCD 8.0 dB 5.0 dB 5.0 dB word errors 25 % 25 % 25 %",
		"Over the evaluations cut, % 0",
		"0.0 % after step 1, 0.0 % after step 3. The worst is 50 % after step 2. Lower is better. MCD, dB 5",
		"8.0 dB after step 1, 5.0 dB after step 3. Lower is better. word errors, %",
		"سلام 你好 clip 1, LJ-1 , fa recording step 1 (first) length 1.500 s MCD 8.0 dB word errors 25 %",
		"step 2 (best) cut after 1.500 s", "A step a step 50.0 ms", "decode 7.00 ms",
		"GPU 0, model 8.0 GiB of 16.0 GiB (50 %)", "arenas: 2.0 GiB", "rest of the processes: 6.0 GiB", "85 % ± 10 %",
		"features 2 1,384 26.2 ms 92.3 ms 1 0 0", "training 24 45.6 s",
		"training, left out 3 1.0 min too long (excluded.jsonl)",
		"padding in rows with a clip 14 %", "1 clip in quarantine.jsonl", "silent decode 1 LJ-1",
		"Tensors after step 3",
		"attention 4 33 0.500 1.000 0 1.000 2.000 0", "Histograms attention", "Values from 0 to 1.000.", "slow disk",
		"Settings that are not the default",
		"--batch-size 2 flag",
		"All settings", "--lr 0.1 default", "go 1.26",
	} {
		at := strings.Index(shown[last:], want)
		if at < 0 {
			t.Errorf("after %.80q there is no %q", shown[max(0, last-80):last], want)
			continue
		}
		last += at
	}
	if n := bytes.Count(text, []byte("<audio")); n != 5 {
		t.Errorf("%d sounds, want 3 takes and 2 true recordings", n)
	}
	if n := bytes.Count(text, []byte("data:image/png;base64,")); n != 2 {
		t.Errorf("%d pictures, want one of a take and one of a probe: the other is none", n)
	}
	if t.Failed() {
		t.Log(shown)
	}
}

// TestPageOfAdaptive: it has what has changed.
func TestPageOfAdaptive(t *testing.T) {
	files := whole()
	files["report.json"] = strings.Replace(files["report.json"], "{", `{"adaptive":{
		"depth":{"first":2,"last":4,"largest":4,"limit":50},"changes":2,"list":[
		{"step":17,"what":"depth","from":2,"to":4,"why":"a reason"},
		{"step":33,"what":"mix","from":1,"to":2,"why":"<b>another"}]},`, 1)
	dir := runOf(t, files)
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, rundir.PageFile))
	if err != nil {
		t.Fatal(err)
	}
	shown := shownBy(t, text)
	if want := "What --adaptive changed; 4 batches ahead at most, of 50 before step number of from to why " +
		"17 batches ahead 2 4 a reason 33 processes of mix 1 2 <b>another"; !strings.Contains(shown, want) {
		t.Errorf("there is no %q in\n%s", want, shown)
	}
}

// TestPageOfRanks: it says that the run has several processes, and what each has measured.
func TestPageOfRanks(t *testing.T) {
	files := whole()
	files["report.json"] = strings.Replace(files["report.json"], "{", `{"process":{"rank":0,"of":2},"ranks":[
		{"rank":0,"host":"node1","device":"GPU 0","own_ms":6,"step_ms":8.5},
		{"rank":1,"host":"node2","device":"GPU 1","own_ms":7.25,"step_ms":8.5,"input_stall_ratio":0.12,
			"memory":[{"process_peak_bytes":3221225472}]}],`, 1)
	dir := runOf(t, files)
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, rundir.PageFile))
	if err != nil {
		t.Fatal(err)
	}
	shown := shownBy(t, text)
	for _, want := range []string{
		"nano, cpu, f32, 2 ranks , last written",
		"rank machine device step own part input stall memory 0 node1 GPU 0 8.50 ms 6.00 ms 0.0 % - " +
			"1 node2 GPU 1 8.50 ms 7.25 ms 12 % 3.0 GiB",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("there is no %q in\n%s", want, shown)
		}
	}
}

// TestPageOfARunThatGoesOn: it is made from the lines alone, and says what is missing.
func TestPageOfARunThatGoesOn(t *testing.T) {
	content := whole()
	delete(content, "report.json")
	run, err := record.Open(runOf(t, content))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Of(run, ".", MostMedia, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	shown := shownBy(t, text)
	for _, want := range []string{
		"Run first unfinished", "The run is unfinished, after 3 steps. The last step has no report: the run still " +
			"trains, or was killed.",
		"Input stall so far: 10 % of the time", "report.json is not there", "20.0 steps/s", "50.0 /s",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("there is no %q in %s", want, shown)
		}
	}
}

// TestPageOfLittle: parts of which a run has nothing are not in the page.
func TestPageOfLittle(t *testing.T) {
	run, err := record.Open(runOf(t, map[string]string{
		"metrics.jsonl": "", "report.json": `{"outcome":"done","warnings":[],"memory":[],"plugins":[],"phases_ms":{}}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Of(run, ".", MostMedia, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if shown := shownBy(t, text); strings.Contains(shown, "Warnings") || !strings.Contains(shown, "after 0 steps") {
		t.Error(shown)
	}
}

// TestFolded: a list of many rows is closed, with its number of rows, and a short one is open.
func TestFolded(t *testing.T) {
	for _, rows := range []int{mostOpen, mostOpen + 1} {
		data := `{"outcome":"done","unknown_characters":[` +
			strings.Repeat(`{"char":"今","code":"U+4ECA","count":1},`, rows-1) + `{"char":"晚","code":"U+665A","count":1}]}`
		run, err := record.Open(runOf(t, map[string]string{"metrics.jsonl": "", "report.json": data}))
		if err != nil {
			t.Fatal(err)
		}
		text, err := Of(run, ".", MostMedia, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		shown := shownBy(t, text)
		closed := bytes.Contains(text,
			[]byte("<details><summary>Characters that the tokenizer does not know: 25 rows</summary>"))
		if closed != (rows > mostOpen) || strings.Count(shown, "Characters that the tokenizer") != 1 ||
			strings.Count(shown, "U+4ECA") != rows-1 || !strings.Contains(shown, "U+665A") {
			t.Errorf("%d rows: %.300s", rows, shown)
		}
	}
}

// TestMedia: what does not fit is a link, and only regular files that are sounds and pictures are taken.
func TestMedia(t *testing.T) {
	dir := runOf(t, whole())
	secret := filepath.Join(t.TempDir(), "secret.wav")
	if err := os.WriteFile(secret, []byte(pagetest.Wave), 0o666); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "samples", "step-000003")
	if err := os.Symlink(secret, filepath.Join(at, "link.wav")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(at, "pipe.wav"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(dir, "samples", "step-000009")); err != nil {
		t.Fatal(err)
	}
	m := NewMedia(int64(2*len(pagetest.Wave)) + 1)
	take := func(name string) *Medium { return m.Take(dir, name, "javascript:a b") }
	for _, name := range []string{
		"samples/step-000003/link.wav", "samples/step-000003/pipe.wav", "samples/step-000009/secret.wav", "config.yaml",
		"samples/step-000002/clip-1.png", "samples/step-000007/no.wav", "",
	} {
		if got := take(name); got != nil {
			t.Errorf("%s was taken: %+v", name, got)
		}
	}
	const name = "samples/step-000003/clip-1.wav"
	for i := range 3 {
		got := take(name)
		if inside := got.Data != ""; inside != (i < 2) || (got.Link == "./javascript:a%20b/"+name) == inside {
			t.Errorf("the sound %d: %.40q, link %q", i, got.Data, got.Link)
		}
	}
	if m.Linked != 1 {
		t.Errorf("%d links", m.Linked)
	}
}

// TestWriteFollowsNoLink: a page that is a link is replaced, and what it leads to stays.
func TestWriteFollowsNoLink(t *testing.T) {
	dir := runOf(t, whole())
	mine := filepath.Join(t.TempDir(), "mine.html")
	if err := os.WriteFile(mine, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(mine, filepath.Join(dir, rundir.PageFile)); err != nil {
		t.Fatal(err)
	}
	err := Write(dir)
	if text, rerr := os.ReadFile(mine); rerr != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, rerr)
	}
	if info, lerr := os.Lstat(filepath.Join(dir, rundir.PageFile)); err == nil && (lerr != nil ||
		!info.Mode().IsRegular()) {
		t.Errorf("%v, %v", info, lerr)
	}
}

// TestPolicy: the style of a page is the one that its policy names.
func TestPolicy(t *testing.T) {
	text, err := Document("a", "<p>b</p>")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("<style>"+style+"</style>")) || strings.Contains(style, "</") ||
		!bytes.Contains(text, []byte("default-src &#39;none&#39;; style-src &#39;sha256-")) {
		t.Errorf("%s", text)
	}
}

// TestBestByMeasure: the best is that of the run, whose measure the page names, and not the lowest loss.
func TestBestByMeasure(t *testing.T) {
	content := whole()
	content["report.json"] = `{"outcome":"done","steps":3,"early_stop":{"evaluations":2,"by":"spoken.mcd_db"},
		"evaluation":{"step":3,"loss":3.75,"best":{"step":1,"loss":5,"by":"spoken.mcd_db","value":4.25}}}`
	run, err := record.Open(runOf(t, content))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Of(run, ".", MostMedia, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	shown := shownBy(t, text)
	for _, want := range []string{
		"best evaluation 4.250 by spoken.mcd_db, step 1, loss 5.000", "step 1 (first, best)",
		"the best by spoken.mcd_db has the loss 5.000 at step 1, the last 3.750.",
		"The run stopped early, after 3 steps: 2 evaluations without a better spoken.mcd_db.",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("there is no %q in\n%s", want, shown)
		}
	}
}
