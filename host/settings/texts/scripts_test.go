package texts

import "testing"

func TestDisguised(t *testing.T) {
	for word, want := range map[string]bool{
		"москва": false, "мoсква": true, "Москвa": true, "plain": false, "pаypal": true, "λόγος": false, "λόγoς": true,
		"Αthens": true, "ΔT": false, "kΩ": false, "USBها": false, "": false, "ДНКaza": false,
	} {
		if got := Disguised(word); got != want {
			t.Errorf("%s %+q: %v", word, word, got)
		}
	}
}
