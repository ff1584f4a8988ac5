package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/wav"
)

// program writes a program that stands for xtts-host.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func ordered(t *testing.T, s *Server, o order) (int, string) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	status, _, text := ask(t, s, "POST", "/api/runs/0/speak", string(body), "Sec-Fetch-Site: same-origin")
	return status, text
}

// TestSpeak: the program gets the text by its standard input, a voice as a file of its own, and no flag that the page
// has not chosen. What it says is a WAV file with its length.
func TestSpeak(t *testing.T) {
	dir := small(t)
	write(t, dir, "samples/reference/clip-1.wav", tone())
	seen := filepath.Join(t.TempDir(), "seen")
	said := filepath.Join(t.TempDir(), "said.wav")
	endless := tone()
	copy(endless[4:], "\xff\xff\xff\xff")
	copy(endless[wav.HeaderSize-4:], "\xff\xff\xff\xff")
	write(t, filepath.Dir(said), "said.wav", endless)
	s := serve(t, Config{Runs: []string{dir}, Program: program(t, fmt.Sprintf(
		`{ printf '%%s\n' "$@"; cat; echo; cmp /proc/self/fd/3 %q && echo same; ps -o ni= -p $$; } >%q; cat %q`,
		filepath.Join(dir, "samples/reference/clip-1.wav"), seen, said))})
	const words = "--out=/etc/passwd\nسلام؛ \"$(id)\""
	status, text := ordered(t, s, order{Text: words, Language: "fa", Checkpoint: "best",
		Voice: "samples/reference/clip-1.wav"})
	if status != 200 || !strings.Contains(text, `"id":1`) || !strings.Contains(text, `"seconds":0.5`) {
		t.Fatalf("%d %s", status, text)
	}
	got, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	want := "synthesize\n--run=" + dir + "@best\n--text-file=-\n--out=-\n--device=cpu\n--threads="
	if !strings.HasPrefix(string(got), want) ||
		!strings.Contains(string(got), "\n--language=fa\n--speaker=/proc/self/fd/3\n"+words+"\nsame\n") {
		t.Errorf("the program got\n%s", got)
	}
	if !strings.HasSuffix(strings.TrimSpace(string(got)), " 19") && !strings.HasSuffix(strings.TrimSpace(string(got)),
		"\n19") {
		t.Errorf("priority of\n%s", got)
	}
	status, h, sound := ask(t, s, "GET", "/api/runs/0/speech/1.wav", "")
	if status != 200 || h.Get("Content-Type") != "audio/wav" || sound != string(tone()) {
		t.Errorf("%d %v, %d bytes", status, h, len(sound))
	}
	if status, _, png := ask(t, s, "GET", "/api/runs/0/speech/1.png", ""); status != 200 || !strings.HasPrefix(png,
		"\x89PNG") {
		t.Errorf("picture: %d %.50q", status, png)
	}
	for range mostKept {
		ordered(t, s, order{Text: "a", Checkpoint: "2"})
	}
	if status, _, _ := ask(t, s, "GET", "/api/runs/0/speech/1.wav", ""); status != 404 {
		t.Errorf("the first of %d: %d", mostKept+1, status)
	}
}

// TestLongSpeech: the length of what was spoken is that of all of it.
func TestLongSpeech(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said.wav")
	write(t, filepath.Dir(said), "said.wav", wav.File(8000, make([]int16, 8000*(longest+30))))
	s := serve(t, Config{Runs: []string{small(t)}, Program: program(t, "cat "+said)})
	if status, text := ordered(t, s, order{Text: "a", Checkpoint: "best"}); status != 200 ||
		!strings.Contains(text, `"seconds":90,`) {
		t.Errorf("%d %s", status, text)
	}
}

// TestSpeakRefuses: what is no order is refused before a process is started, and what the program says against one is
// the answer.
func TestSpeakRefuses(t *testing.T) {
	dir := small(t)
	if err := os.MkdirAll(filepath.Join(dir, "samples", "reference"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "samples", "reference", "linked.wav")); err != nil {
		t.Fatal(err)
	}
	started := filepath.Join(t.TempDir(), "started")
	s := serve(t, Config{Runs: []string{dir}, Program: program(t, "touch "+started)})
	for _, o := range []order{
		{Text: " \n", Checkpoint: "best"}, {Text: strings.Repeat("a", mostWords+1), Checkpoint: "best"},
		{Text: "a"}, {Text: "a", Checkpoint: "best --out=x"}, {Text: "a", Checkpoint: "../../other"},
		{Text: "a", Checkpoint: "best", Language: "--out"}, {Text: "a", Checkpoint: "best", Voice: "/etc/passwd"},
		{Text: "a", Checkpoint: "best", Voice: "samples/reference/a.png"},
		{Text: "a", Checkpoint: "best", Voice: "samples/reference/linked.wav"},
	} {
		if status, text := ordered(t, s, o); status != 400 && status != 422 {
			t.Errorf("%+v: %d %s", o, status, text)
		}
	}
	for _, body := range []string{"", "{", `{"text":1}`, `{"text":"a","checkpoint":"best","flag":"--out"}`,
		`{"text":"` + strings.Repeat("a", 20<<10) + `"}`} {
		if status, _, _ := ask(t, s, "POST", "/api/runs/0/speak", body, "Sec-Fetch-Site: same-origin"); status != 400 {
			t.Errorf("%.40s: %d", body, status)
		}
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("a process was started")
	}
	if status, text := ordered(t, s, order{Text: "a", Checkpoint: "best"}); status != 422 || !strings.Contains(text,
		"no sound") {
		t.Errorf("nothing was said: %d %s", status, text)
	}
	s = serve(t, Config{Runs: []string{dir}, Program: program(t,
		"echo reading; echo 'error: there is no checkpoint' >&2; echo 'hint: train first' >&2; exit 2")})
	if status, text := ordered(t, s, order{Text: "a", Checkpoint: "best"}); status != 422 ||
		strings.TrimSpace(text) != "there is no checkpoint; hint: train first" {
		t.Errorf("%d %s", status, text)
	}
	s = serve(t, Config{Runs: []string{dir}, Program: program(t, `
[[ $* = *--language=* ]] && { echo "error: --language en: the model of a has no languages" >&2; exit 2; }
echo "error: asked again: ${*: -1}" >&2; exit 2`)})
	if status, text := ordered(t, s, order{Text: "a", Checkpoint: "best", Language: "en"}); status != 422 ||
		!strings.HasPrefix(text, "asked again: --threads=") {
		t.Errorf("a model without languages: %d %s", status, text)
	}
	s = serve(t, Config{Runs: []string{dir}, Program: program(t, "head -c 100000000 /dev/zero")})
	if status, _ := ordered(t, s, order{Text: "a", Checkpoint: "best"}); status != 422 {
		t.Errorf("endless speech: %d", status)
	}
	s = serve(t, Config{Runs: []string{dir}})
	if status, _ := ordered(t, s, order{Text: "a", Checkpoint: "best"}); status != 404 {
		t.Errorf("without a program: %d", status)
	}
}

// TestSpeakEnds: one text is spoken at a time, and what speaks ends with the server.
func TestSpeakEnds(t *testing.T) {
	dir := small(t)
	pipe := filepath.Join(t.TempDir(), "started")
	s := serve(t, Config{Runs: []string{dir}, Program: program(t,
		"echo $$ >"+pipe+".new; mv "+pipe+".new "+pipe+"; exec sleep 1000")})
	answer := make(chan string, 1)
	go func() {
		defer func() { recover() }()
		err := func() error {
			s.speaker.busy.Lock()
			defer s.speaker.busy.Unlock()
			_, _, err := s.speaker.speak(s.ctx, s.runs[0], &order{Text: "a", Checkpoint: "best"})
			return err
		}()
		answer <- fmt.Sprint(err)
	}()
	var pid []byte
	for pid == nil {
		pid, _ = os.ReadFile(pipe)
	}
	if status, text := ordered(t, s, order{Text: "b", Checkpoint: "best"}); status != 409 {
		t.Errorf("a second text: %d %s", status, text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if text := <-answer; text != "stopped" {
		t.Error(text)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
		t.Error("the process is still there")
	}
}
