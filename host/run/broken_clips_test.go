package run

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// fault is a clip of the short data set and what is done to it.
type fault struct {
	id     string
	reason string // pattern
	damage func(path string) error
}

// header puts a number of four bytes into a WAV file's plain header.
func header(at int, value uint32) func(string) error {
	return func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(data[at:], value)
		return os.WriteFile(path, data, 0o666)
	}
}

// instead puts something else where the clip was.
func instead(put func(path string) error) func(string) error {
	return func(path string) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		return put(path)
	}
}

// constant overwrites every sample with a value.
func constant(value int16) func(string) error {
	return func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i := 44; i < len(data); i += 2 {
			binary.LittleEndian.PutUint16(data[i:], uint16(value))
		}
		return os.WriteFile(path, data, 0o666)
	}
}

// floatsWithNaN makes a mono file of 32-bit floats, one of which is not a number.
func floatsWithNaN(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out := slices.Clone(data[:44])
	binary.LittleEndian.PutUint16(out[20:], 3) // WAVE_FORMAT_IEEE_FLOAT
	binary.LittleEndian.PutUint32(out[28:], 4*binary.LittleEndian.Uint32(out[24:]))
	binary.LittleEndian.PutUint16(out[32:], 4)
	binary.LittleEndian.PutUint16(out[34:], 32)
	for i := 44; i < len(data); i += 2 {
		v := float32(int16(binary.LittleEndian.Uint16(data[i:]))) / 32768
		if i == 444 {
			v = float32(math.NaN())
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	binary.LittleEndian.PutUint32(out[40:], uint32(len(out)-44))
	return os.WriteFile(path, out, 0o666)
}

// writeSamples writes a mono file of 22.05 kHz with a tone.
func writeSamples(path string, n int) error {
	data := []byte("RIFF\x00\x00\x00\x00WAVEfmt " +
		"\x10\x00\x00\x00\x01\x00\x01\x00\x22\x56\x00\x00\x44\xac\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00")
	binary.LittleEndian.PutUint32(data[4:], uint32(36+2*n))
	binary.LittleEndian.PutUint32(data[40:], uint32(2*n))
	for i := range n {
		data = binary.LittleEndian.AppendUint16(data, uint16(int16(8000*math.Sin(float64(i)/10))))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o666)
}

// faults are all the ways in which a clip can be useless.
func faults() []fault {
	all := []fault{
		{
			"A/0001",
			`^truncated: the "data" chunk declares \d+ bytes, but the file has 1000; copy the recording from its source again, or save what is there: ffmpeg -i .*`,
			func(p string) error { return os.Truncate(p, 44+1000) },
		},
		{
			"A/0002",
			`^truncated: the "data" chunk declares 2000000000 bytes, but the file has \d+; copy the recording`,
			header(40, 2_000_000_000),
		},
		{"A/0003", `^sample rate of 0 Hz is outside`, header(24, 0)},
		{"A/0004", `^sample rate of 4000000000 Hz is outside`, header(24, 4_000_000_000)},
		{"A/0005", `^the audio has no samples$`, instead(func(p string) error { return writeSamples(p, 0) })},
		{"A/0006", `^a named pipe, not a regular file$`, instead(
			func(p string) error { return syscall.Mkfifo(p, 0o666) })},
		{"A/0007", `^a folder, not a regular file$`, instead(func(p string) error { return os.Mkdir(p, 0o777) })},
		{"A/0008", `^a device, not a regular file$`, instead(
			func(p string) error { return os.Symlink("/dev/zero", p) })},
		{"A/0009", `^there is no wavs/A/0009\.wav, \.flac, \.ogg, \.opus, \.mp3 or \.oga$`, os.Remove},
		{"A/0010", `^stat: too many levels of symbolic links$`, instead(
			func(p string) error { return os.Symlink(p, p) })},
		{"B/0001", `^the file is no audio of a known format`, func(p string) error {
			return os.WriteFile(p, []byte("<html>404 Not Found</html>"), 0o666)
		}},
		{"B/0002", `^silent: no sample is above -80 dB of full scale$`, constant(0)},
		{"B/0003", `^silent: `, constant(3)},
		{"B/0004", `^sample 200 of channel 1 is NaN: not finite$`, floatsWithNaN},
		{
			"C/0001", `: 100 samples with a window of 512: the waveform is shorter than one window$`,
			func(p string) error { return writeSamples(p, 100) },
		},
	}
	if os.Geteuid() != 0 { // nothing is closed to root
		all = append(all, fault{"B/0005", `^open: permission denied$`, func(p string) error { return os.Chmod(p, 0) }})
	}
	return all
}

// dataFolder copies the short clips, and adds to the list a line without columns, a clip that is longer than the
// largest bucket, and one whose features cannot be computed. B/0002 is in both lists.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(clips)); err != nil {
		t.Fatal(err)
	}
	for id, n := range map[string]int{"C/0001": 100, "D/0001": 50000} {
		if err := writeSamples(filepath.Join(dir, "wavs", id+".wav"), n); err != nil {
			t.Fatal(err)
		}
	}
	for list, more := range map[string]string{
		"metadata_train.csv": "no columns\nC/0001|too short.\nD/0001|too long.\n",
		"metadata_eval.csv":  "B/0002|in both.\n",
	} {
		f, err := os.OpenFile(filepath.Join(dir, list), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(more); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readRows(t *testing.T, path string) []report.Quarantined {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows []report.Quarantined
	for line := range strings.Lines(string(data)) {
		var r report.Quarantined
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows = append(rows, r)
	}
	return rows
}

// TestBrokenClips trains on data with a clip of each kind of fault. Each is named with its reason, and the others are
// trained on as if the lines that the index rejects were not there, and the other rows empty.
func TestBrokenClips(t *testing.T) {
	// Frames of 512 samples that lie within the waveform: one of 100 samples has none. The index takes it, since the
	// window is shorter.
	bundle := rebuild(t, func(m *manifest.Bundle) { m.Features.Center, m.Features.WinLength = false, 64 })
	flags := []string{"--graph", bundle, "--max-steps", "9", "--max-quarantine", "40", "--eval-every", "4"}
	dir := dataFolder(t)
	want := map[string]string{
		"train metadata_train.csv:25": "^no '|' between id and text$", "validation B/0002": "^silent: ",
	}
	for _, f := range faults() {
		if err := f.damage(filepath.Join(dir, "wavs", f.id+".wav")); err != nil {
			t.Fatal(err)
		}
		want["train "+f.id] = f.reason
	}
	broken := mustTrain(t, append(flags, "--train-data", dir)...)

	rejected, emptied := checkQuarantine(t, broken, want)
	sound := dataFolder(t)
	leaveOut(t, filepath.Join(sound, "metadata_train.csv"), rejected)
	// The same plan with sound clips, of which some are removed when the plan is complete: the banner comes then.
	taken := false
	take := writer(func([]byte) {
		for _, path := range emptied {
			if err := os.Remove(filepath.Join(sound, path)); err != nil && !taken {
				t.Error(err)
			}
		}
		taken = true
	})
	empty, err := trainPico(t, console.Console{Out: take}, append(flags, "--train-data", sound)...)
	if err != nil {
		t.Fatal(err)
	}
	a, b := losses(t, broken), losses(t, empty)
	if !slices.Equal(a, b) || len(a) != 9 {
		t.Errorf("losses with broken clips\n%s\nand with empty rows\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

// checkQuarantine compares what a run lists of its broken clips with the reasons to be found, by split and id. It
// returns the ids that the index rejected, and the paths of the clips whose rows were empty.
func checkQuarantine(t *testing.T, run string, want map[string]string) (rejected, emptied []string) {
	t.Helper()
	rows := readRows(t, filepath.Join(run, rundir.QuarantineFile))
	for _, r := range rows {
		name := r.Split + " " + r.ID
		if ok, err := regexp.MatchString(want[name], r.Reason); want[name] == "" || !ok || err != nil {
			t.Errorf("%s: reason %q, want %q", name, r.Reason, want[name])
		}
		delete(want, name)
		switch {
		case r.Split == report.Validation:
		case r.Stage == "index":
			rejected = append(rejected, r.ID)
		default:
			emptied = append(emptied, filepath.Join("wavs", r.ID+".wav"))
		}
		if r.Path == "" && !strings.Contains(r.ID, "csv:") {
			t.Errorf("%s has no path", name)
		}
	}
	if len(want) > 0 || len(emptied) < 3 {
		t.Errorf("not in quarantine: %v; empty rows: %v", want, emptied)
	}
	excluded := readRows(t, filepath.Join(run, rundir.ExcludedFile))
	if len(excluded) != 1 || excluded[0].ID != "D/0001" ||
		excluded[0].Reason != "the clip has 2.27 s, and the model takes 2.00 s at most" || excluded[0].Stage != "plan" {
		t.Errorf("too long: %+v", excluded)
	}
	data, err := os.ReadFile(filepath.Join(run, rundir.ReportFile))
	if err != nil || !strings.Contains(string(data), fmt.Sprintf(`"quarantined": %d,`, len(rows))) ||
		!strings.Contains(string(data), `"excluded": 1,`) {
		t.Errorf("the report does not count %d rows: %v", len(rows), err)
	}
	return rejected, emptied
}

// leaveOut removes the lines of these clips from a list, and its line without columns.
func leaveOut(t *testing.T, list string, ids []string) {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if id, _, _ := strings.Cut(line, "|"); id != "no columns\n" && !slices.Contains(ids, id) {
			kept.WriteString(line)
		}
	}
	if err := os.WriteFile(list, []byte(kept.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}
