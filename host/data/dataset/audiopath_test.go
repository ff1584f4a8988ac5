package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestAudioPath: a recording is found under the other Unicode form of its name, as another system stores it, and with
// an ending in capitals. An id with its ending is named as the mistake, a file in another format with the command that
// converts it.
func TestAudioPath(t *testing.T) {
	dir := folder(t, "Größe|a", "Zoë/é|a", "loud|a", "LOUD|a", "plain.wav|a", "Übel|a", "phone|a")
	for _, name := range []string{norm.NFD.String("Größe.wav"), norm.NFD.String("Zoë/é.wav"), "loud.WAV", "plain.wav"} {
		write(t, filepath.Join(dir, "wavs", name), wavFile(8000, 1, ramp(0, 50)))
	}
	phone := filepath.Join(dir, "wavs", "phone")
	write(t, phone+".m4a", []byte("sound"))
	ix := open(t, Config{Dir: dir, SampleRate: 8000})
	var got []string
	for _, r := range ix.Rows {
		if _, err := os.Stat(r.Path); err != nil {
			t.Error(err)
		}
		got = append(got, r.ID)
	}
	if want := []string{"Größe", "Zoë/é", "loud"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	got = nil
	for _, r := range ix.Rejected {
		got = append(got, r.ID+": "+strings.Replace(r.Reason, ", .flac, .ogg, .opus, .mp3 or .oga", "", 1))
	}
	if want := []string{
		"LOUD: there is no wavs/LOUD.wav",
		"plain.wav: there is no wavs/plain.wav.wav (leave out the ending of the id: wavs/plain.wav is there)",
		"Übel: there is no wavs/Übel.wav",
		"phone: there is no wavs/phone.wav; convert with: ffmpeg -i " + phone + ".m4a -c:a flac " + phone + ".flac",
	}; !slices.Equal(got, want) {
		t.Errorf("rejected %q, want %q", got, want)
	}
}

// TestListByItsPath: a list of an LJSpeech folder may be named itself.
func TestListByItsPath(t *testing.T) {
	dir := folder(t, "a|one", "b|two")
	write(t, filepath.Join(dir, "Eval.CSV"), []byte("b|two\n"))
	for _, id := range []string{"a", "b"} {
		clip(t, dir, id, 8000, 1, ramp(0, 50))
	}
	ix := open(t, Config{Dir: filepath.Join(dir, "Eval.CSV"), SampleRate: 8000, Split: Eval})
	if len(ix.Rows) != 1 || ix.Rows[0].ID != "b" || ix.List != "Eval.CSV" {
		t.Errorf("%s has the rows %+v, rejected %+v", ix.List, ix.Rows, ix.Rejected)
	}
}
