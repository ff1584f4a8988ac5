package hint

import "testing"

// TestProgram: commands begin with the word that the program was called by, as a shell reads it.
func TestProgram(t *testing.T) {
	defer called.Store(nil)
	for _, c := range []struct{ word, want string }{
		{"", "xtts-host doctor"}, {"xtts-host", "xtts-host doctor"}, {"bin/xtts-host", "bin/xtts-host doctor"},
		{"/opt/my tools/xtts-host", "'/opt/my tools/xtts-host' doctor"},
	} {
		CalledAs(c.word)
		if got := Command("doctor"); got != c.want {
			t.Errorf("called as %q: %s, want %s", c.word, got, c.want)
		}
	}
}
