package supervise

import (
	"errors"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// fakeDraws are what the fake reports, by the value of its mode "draws".
var fakeDraws = map[string][]*stagepb.Draws{
	"sound":   {{Row: 3, Json: `{"gain": 0.5}`}, {Row: 0, Json: " {}"}},
	"row":     {{Row: 4, Json: `{}`}},
	"twice":   {{Row: 1, Json: `{}`}, {Row: 1, Json: `{}`}},
	"garbage": {{Row: 1, Json: `{"gain": nan}`}},
	"array":   {{Row: 1, Json: `[1]`}},
	"large":   {{Row: 1, Json: `{"x": "` + strings.Repeat("x", stage.MaxReport) + `"}`}},
}

func reported(t *testing.T, mode string, report bool) (Result, error) {
	t.Helper()
	p := newRig(t, mode).open()
	return p.Call(t.Context(), Request{
		RowKeys: make([]byte, 4*stage.KeySize), Report: report,
		Sources: []*stagepb.Source{{Clip: "a", Start: 5, End: 9}, {}, {}, {}},
	})
}

func TestDraws(t *testing.T) {
	t.Run("of some rows", func(t *testing.T) {
		r, err := reported(t, "draws=sound", true)
		if err != nil || len(r.Draws) != 4 || string(r.Draws[0]) != " {}" || r.Draws[1] != nil ||
			string(r.Draws[3]) != `{"gain": 0.5}` {
			t.Errorf("draws %q, %v", r.Draws, err)
		}
	})
	t.Run("none", func(t *testing.T) {
		if r, err := reported(t, "ok", true); err != nil || r.Draws != nil {
			t.Errorf("draws %q, %v", r.Draws, err)
		}
	})
	for mode, want := range map[string]string{
		"row":     "it reports draws of row 4 of a batch of 4",
		"twice":   "it reports the draws of row 1 twice",
		"garbage": "the draws that it reports of row 1 are not a JSON object",
		"array":   "the draws that it reports of row 1 are not a JSON object",
		"large":   "the draws that it reports of row 1 have 65545 bytes, more than 65536",
		"sound":   "it reports draws of row 3, which the host did not ask for", // without being asked
	} {
		t.Run(mode, func(t *testing.T) {
			_, err := reported(t, "draws="+mode, mode != "sound")
			var e *PluginError
			if !errors.As(err, &e) || e.Err.Error() != "process lost: stage first: "+want || !e.Violated {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// TestProtocols: a process is sent what the version of the protocol has that both sides agreed on.
func TestProtocols(t *testing.T) {
	for protocols, want := range map[string]string{
		"1":     "report false, sources []",
		"1+2":   `report true, sources [clip:"a" start:5 end:9`,
		"2":     `report true, sources [clip:"a" start:5 end:9`,
		"1+2+3": `report true, sources [clip:"a" start:5 end:9`,
	} {
		t.Run(protocols, func(t *testing.T) {
			_, err := reported(t, "tells,protocols="+protocols, true)
			// the text of messages has one or two spaces between fields
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "  ", " "), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	t.Run("draws with protocol 1", func(t *testing.T) {
		if _, err := reported(t, "draws=sound,protocols=1", true); err == nil ||
			!strings.Contains(err.Error(), "which the host did not ask for") {
			t.Error(err)
		}
	})
	t.Run("a message that is used again", func(t *testing.T) {
		for _, c := range [][2]string{{"1+2", "report true, sources [clip"}, {"1", "report false, sources []"}} {
			r := newRig(t, "tells,protocols="+c[0])
			p := r.open()
			request := Request{
				RowKeys: make([]byte, stage.KeySize), Report: true, Sources: []*stagepb.Source{{Clip: "a"}},
			}
			if _, err := p.Call(t.Context(), request); err == nil || !strings.Contains(err.Error(), c[1]) {
				t.Error(c[0], err)
			}
			p.Close()
		}
	})
}
