package dropout

import (
	"fmt"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "dropout", New, defaults(), `{"mode": "packets"}`,
		`{"mode": "packets", "loss_max": 0.9, "burst": 100, "concealment": "repeat"}`,
		`{"pieces_max": 100, "piece_ms_max": 60000}`)
}

// TestPieces: samples are zero or as they were, and the zeros are in as many pieces as were drawn, of the drawn length.
func TestPieces(t *testing.T) {
	clip := effecttest.Noise(30000)
	e := effecttest.Must(t, New(), effecttest.Options{
		Config: `{"pieces_min": 1, "pieces_max": 1, "piece_ms_min": 50, "piece_ms_max": 50}`,
	})
	starts := map[int]bool{}
	for key := range 20 {
		zeros, first := 0, -1
		for i, x := range e.Apply(t, clip, key) {
			switch {
			case x == 0:
				if first < 0 {
					first = i
				}
				if zeros++; i != first+zeros-1 {
					t.Fatalf("key %d: more than one piece", key)
				}
			case x != clip[i]:
				t.Fatalf("key %d: sample %d changed", key, i)
			}
		}
		if zeros != 1103 { // 1102.5
			t.Errorf("key %d: %d zeros", key, zeros)
		}
		starts[first] = true
	}
	if len(starts) < 15 {
		t.Errorf("%d places", len(starts))
	}
}

// TestPackets: of 40,000 packets, the share that is lost and the mean length of a burst are the configured ones within
// five standard errors, which are measured at about 1 % of 0.3 and of 3.
func TestPackets(t *testing.T) {
	e := effecttest.Must(t, New(), effecttest.Options{Rate: 1000,
		Config: `{"mode": "packets", "packet_ms": 2, "loss_min": 0.3, "loss_max": 0.3, "burst": 3}`})
	clip := make([]float32, 80_000)
	for i := range clip {
		clip[i] = 1
	}
	out := e.Apply(t, clip, 5)
	lost, bursts := 0.0, 0.0
	for i := 0; i < len(out); i += 2 {
		if out[i] != out[i+1] {
			t.Fatalf("packet %d is lost in part", i/2)
		}
		if out[i] == 0 {
			if lost++; i == 0 || out[i-1] != 0 {
				bursts++
			}
		}
	}
	if share, burst := lost/40_000, lost/bursts; math.Abs(share-0.3) > 0.025 || math.Abs(burst-3) > 0.15 {
		t.Errorf("a share of %g, bursts of %g packets", share, burst)
	}
}

// TestShortRows: rows of three packets lose the drawn share in the mean, also the largest for a burst, within five
// standard errors, which are at most 0.5/sqrt(rows).
func TestShortRows(t *testing.T) {
	const rows = 4000
	clip := []float32{1, 1, 1}
	for _, c := range []struct{ share, burst float64 }{{0.5, 10}, {0.75, 3}, {0.5, 1}, {0.05, 4}} {
		e := effecttest.Must(t, New(), effecttest.Options{Rate: 1000, Width: len(clip), Config: fmt.Sprintf(
			`{"mode": "packets", "packet_ms": 1, "loss_min": %g, "loss_max": %[1]g, "burst": %g}`, c.share, c.burst)})
		lost := 0.0
		for key := range rows {
			for _, x := range e.Apply(t, clip, key) {
				lost += float64(1 - x)
			}
		}
		if share := lost / float64(rows*len(clip)); math.Abs(share-c.share) > 5*0.5/math.Sqrt(rows) {
			t.Errorf("a share of %g, want %g in bursts of %g packets", share, c.share, c.burst)
		}
	}
}

// TestRepeat: a lost packet is the one before it, at half its level.
func TestRepeat(t *testing.T) {
	e := effecttest.Must(t, New(), effecttest.Options{Rate: 1000,
		Config: `{"mode": "packets", "packet_ms": 10, "loss_min": 0.4, "loss_max": 0.4, "concealment": "repeat"}`})
	clip := effecttest.Noise(4000)
	out := e.Apply(t, clip, 5)
	lost := 0
	for from := 10; from < len(out); from += 10 {
		if effecttest.SameBits(out[from:from+10], clip[from:from+10]) {
			continue
		}
		lost++
		for i := from; i < from+10; i++ {
			if out[i] != out[i-10]/2 {
				t.Fatalf("sample %d is %g, want half of %g", i, out[i], out[i-10])
			}
		}
	}
	if lost < 80 || lost > 240 {
		t.Errorf("%d of 400 packets are lost", lost)
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"pieces_min": 4}`:    "config: pieces_min 4 is above pieces_max 3\nhint: ",
		`{"piece_ms_min": 90}`: "config: piece_ms_min 90 is above piece_ms_max 80",
		`{"loss_min": 0.5}`:    "config: loss_min 0.5 is above loss_max 0.1",
		`{"loss_max": 0.7}`: "config: loss_max 0.7 is above burst/(burst+1), which is 0.6667\nhint: " +
			"set loss_max to 0.666 or less, or burst to 2.34 or more",
	})
	for _, config := range []string{`{"loss_max": 0.666}`, `{"loss_max": 0.7, "burst": 2.34}`} {
		effecttest.Must(t, New(), effecttest.Options{Config: config})
	}
}
