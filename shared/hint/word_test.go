package hint

import (
	"os/exec"
	"testing"
)

// TestWord asks a shell what it makes of a word.
func TestWord(t *testing.T) {
	for _, name := range []string{"plain-1.wav", "a b", "it's", `"$HOME"`, "-n", "semi;colon", "ü", "*"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Word(name)).Output()
		want := name
		if name[0] == '-' {
			want = "./" + name
		}
		if err != nil || string(out) != want {
			t.Errorf("%s becomes %s, and the shell makes %q of it (%v)", name, Word(name), out, err)
		}
	}
	if Word("plain-1.wav") != "plain-1.wav" {
		t.Error("a plain name is quoted")
	}
}
