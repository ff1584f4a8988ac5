package checkpoint

import (
	"bytes"
	"fmt"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"math"
	"reflect"
	"strings"
	"testing"
)

func someState(step int64) State {
	return State{
		Version: Version, Step: step, OptimizerStep: step, Epoch: 1, Batch: 7, Seed: -3,
		Schedule: schedule.Schedule{Name: "cosine", BaseLR: 0.1 + 0.2, WarmupSteps: 20, TotalSteps: 300},
		Samples:  16 * step, Frames: 4000 * step,
		Best:       &Best{Step: 1, Loss: 1.25},
		Quarantine: []Quarantined{{"LJ001-0001", "no <audio> & no text"}, {"LJ001-0002", "truncated"}},
		Speakers:   []string{"", "anna", "Ödön"}, Languages: []string{"en", "fa"},
		Hashes: map[string]string{"graph": strings.Repeat("ab", 32), "batch_size": "16"},
	}
}

func TestStateRoundTrip(t *testing.T) {
	want := someState(200)
	data, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeState(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestStateDoesNotDependOnOrder(t *testing.T) {
	a, b := someState(1), someState(1)
	b.Quarantine[0], b.Quarantine[1] = b.Quarantine[1], b.Quarantine[0]
	first := b.Quarantine[0]
	dataA, errA := a.encode()
	dataB, errB := b.encode()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if !bytes.Equal(dataA, dataB) {
		t.Errorf("equal states differ:\n%s\n%s", dataA, dataB)
	}
	if b.Quarantine[0] != first {
		t.Error("encode sorted the caller's list")
	}
}

func TestStateRefuses(t *testing.T) {
	for name, change := range map[string]func(*State){
		"negative step":           func(s *State) { s.Step, s.OptimizerStep = -1, -1 },
		"negative batch":          func(s *State) { s.Batch = -1 },
		"more updates than steps": func(s *State) { s.OptimizerStep = s.Step + 1 },
		"loss not a number":       func(s *State) { s.Best.Loss = math.NaN() },
	} {
		s := someState(5)
		change(&s)
		if _, err := s.encode(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, data := range map[string]string{
		"empty":         ``,
		"not an object": `[]`,
		"unknown key":   `{"version":1,"clock":1}`,
		"two values":    `{"version":1}{}`,
		"no version":    `{}`,
		"later version": `{"version":3}`,
		"negative step": `{"version":1,"step":-1,"optimizer_step":-1}`,
		"too large":     `{"version":1,"step":9223372036854775808}`,
	} {
		if _, err := decodeState([]byte(data)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestManifest(t *testing.T) {
	sum := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	for _, frozen := range [][]byte{nil, sum(4)} {
		want := sums{
			files: map[string][]byte{paramsFile: sum(1), optimizerFile: sum(2), stateFile: sum(3)}, frozen: frozen,
		}
		text := want.encode()
		got, err := decodeManifest(text)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for n := range text {
			if _, err := decodeManifest(text[:n]); err == nil {
				t.Errorf("the first %d of %d bytes were accepted", n, len(text))
			}
		}
		lines := strings.SplitAfter(string(text), "\n")
		for name, s := range map[string]string{
			"a line more":       string(text) + "x\n",
			"a line twice":      lines[0] + string(text),
			"upper case":        strings.ToUpper(string(text)),
			"another order":     lines[1] + lines[0] + strings.Join(lines[2:], ""),
			"carriage returns":  strings.ReplaceAll(string(text), "\n", "\r\n"),
			"another separator": strings.ReplaceAll(string(text), "  ", " *"),
			"another folder":    strings.ReplaceAll(string(text), "  ", "  ../"),
		} {
			if _, err := decodeManifest([]byte(s)); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	}
}

func FuzzState(f *testing.F) {
	data, err := someState(3).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"quarantine":[{}],"best":null,"hashes":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeState(data)
		if err != nil {
			return
		}
		once, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeState(once)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := again.encode()
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%s\n%s", err, once, twice)
		}
	})
}

func FuzzManifest(f *testing.F) {
	s := sums{files: map[string][]byte{
		paramsFile: make([]byte, 32), optimizerFile: make([]byte, 32), stateFile: make([]byte, 32),
	}}
	f.Add(s.encode())
	s.frozen = make([]byte, 32)
	f.Add(s.encode())
	f.Add([]byte("\n\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeManifest(data)
		if err == nil && !bytes.Equal(s.encode(), data) {
			t.Fatalf("%q was accepted", data)
		}
	})
}

// What Save writes, Load must read: a state that is too large is refused while the run can still say so.
func TestEncodeRefusesWhatIsNotRead(t *testing.T) {
	s := someState(3)
	const limit = 64 << 10
	reason := strings.Repeat("r", 1<<10)
	for i := range limit >> 10 {
		s.Quarantine = append(s.Quarantine, Quarantined{ID: fmt.Sprint(i), Reason: reason})
	}
	if _, err := s.encodeWithin(limit); err == nil ||
		!strings.Contains(err.Error(), "rows in quarantine, above the limit of 65536") {
		t.Errorf("encode: %v", err)
	}
	s.Quarantine = s.Quarantine[:1]
	if _, err := s.encodeWithin(limit); err != nil {
		t.Error(err)
	}
}
