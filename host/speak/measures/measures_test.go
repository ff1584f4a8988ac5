package measures

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
)

const rate = 22050

// voice returns the samples of the golden numbers' recording, as integers of 16 bits.
func voice(t *testing.T) []float64 {
	t.Helper()
	data, err := os.ReadFile("../../../shared/pitch/testdata/voice.wav")
	if err != nil {
		t.Fatal(err)
	}
	data = data[44:]
	wave := make([]float64, len(data)/2)
	for i := range wave {
		wave[i] = float64(int16(binary.LittleEndian.Uint16(data[2*i:])))
	}
	return wave
}

// slower returns the recording as testdata/make_golden.py makes speech of it.
func slower(y []float64) []float64 {
	out := make([]float64, int(float64(len(y)-2)/0.9))
	for i := range out {
		x := float64(i) * 0.9
		j := math.Floor(x)
		out[i] = math.Floor((1-(x-j))*y[int(j)] + (x-j)*y[int(j)+1] + 0.5)
	}
	return out
}

func analyze(t *testing.T, wave []float64) *Voice {
	t.Helper()
	a, err := NewAnalyzer(rate)
	if err != nil {
		t.Fatal(err)
	}
	samples := make([]float32, len(wave))
	for i, x := range wave {
		samples[i] = float32(x / 32768)
	}
	v, err := a.Analyze(samples)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// tone is a tone with harmonics, in integers of 16 bits.
func tone(seconds, hz float64) []float64 {
	out := make([]float64, int(seconds*rate))
	for i := range out {
		for k := 1.0; k <= 8; k++ {
			out[i] += 4000 / k * math.Sin(2*math.Pi*k*hz*float64(i)/rate)
		}
	}
	return out
}

// pitches are those of make_golden.py.
func pitches(frames int, factor float64) []float64 {
	f := make([]float64, frames)
	for t := range f {
		if t%11 < 7 {
			f[t] = factor * (120 + 40*math.Sin(0.1*float64(t)))
		}
	}
	return f
}

// TestGolden compares with librosa and scipy. The log-mel spectrogram is f32, which the distortion has to 1e-6.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cepstrum []float64
		Path     int
		Silence  float64
		MCD      float64 `json:"mcd_db"`
		F0Cents  float64 `json:"f0_cents"`
		Voicing  float64 `json:"voicing_error"`
		Repeated float64
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	wave := voice(t)
	truth, speech := analyze(t, wave), analyze(t, slower(wave))
	near := func(what string, got, want, within float64) {
		if !(math.Abs(got-want) <= within*max(1, math.Abs(want))) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for k, want := range golden.Cepstrum {
		near("a coefficient", truth.Cepstra[40][k], want, 1e-5)
	}
	near("silence", Silence(truth), golden.Silence, 0)
	truth.F0, speech.F0 = pitches(len(truth.F0), 1), pitches(len(speech.F0), 1.1)
	c := Compare(truth, speech)
	near("the distortion", c.MCD, golden.MCD, 1e-6)
	near("the error of pitch", c.F0Cents, golden.F0Cents, 1e-9)
	near("the error of voicing", c.VoicingError, golden.Voicing, 1e-9)
	if n := len(align(truth.Cepstra, speech.Cepstra)); n != golden.Path {
		t.Errorf("a path of %d pairs, want %d", n, golden.Path)
	}
	part := wave[4000:16000]
	near("the share that repeats itself", Repeated(analyze(t, slices.Concat(part, part, part))), golden.Repeated, 0.01)
}

// TestCompare: known differences have known measures.
func TestCompare(t *testing.T) {
	low := analyze(t, tone(1, 150))
	if c := Compare(low, low); c != (Comparison{Voiced: true}) {
		t.Errorf("a recording is %+v from itself", c)
	}
	// the same, half as loud: only coefficient 0 differs, as no band is below the floor
	noisy, half := tone(1, 150), []float64{}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range noisy {
		noisy[i] += 500 * random.NormFloat64()
		half = append(half, noisy[i]/2)
	}
	if c := Compare(analyze(t, noisy), analyze(t, half)); c.MCD > 1e-3 || c.VoicingError != 0 || c.F0Cents > 0.01 {
		t.Errorf("loudness counts: %+v", c)
	}
	// a whole tone is 200 cents
	if c := Compare(low, analyze(t, tone(1, 150*math.Pow(2, 1.0/6)))); math.Abs(c.F0Cents-200) > 2 || c.MCD < 0.1 {
		t.Errorf("a whole tone higher: %+v", c)
	}
	// the second half has no voice in one of both
	silence := make([]float64, rate/2)
	paused := analyze(t, slices.Concat(tone(0.5, 150), silence))
	if c := Compare(low, paused); c.VoicingError < 0.2 || c.VoicingError > 0.6 {
		t.Errorf("half of it without a voice: %+v", c)
	}
	if c := Compare(low, analyze(t, silence)); c.Voiced || c.VoicingError < 0.9 || c.MCD < 5 {
		t.Errorf("silence: %+v", c)
	}
}

// TestSilence: frames 40 dB below the loudest, or 60 dB below full scale, are silent.
func TestSilence(t *testing.T) {
	scaled := func(wave []float64, db float64) []float64 {
		out := slices.Clone(wave)
		for i := range out {
			out[i] *= math.Pow(10, db/20)
		}
		return out
	}
	loud := tone(1, 200)
	for _, c := range []struct{ db, want float64 }{{-38, 0}, {-42, 0.5}, {-200, 0.5}} {
		got := Silence(analyze(t, slices.Concat(loud, scaled(loud, c.db))))
		if math.Abs(got-c.want) > 0.02 {
			t.Errorf("after a part %g dB below, %.2f is silent, want %g", c.db, got, c.want)
		}
	}
	if got := Silence(analyze(t, scaled(loud, -70))); got != 1 {
		t.Errorf("of a faint tone, %.2f is silent", got)
	}
	if got := Silence(analyze(t, make([]float64, 1))); got != 1 {
		t.Errorf("of one sample, %.2f is silent", got)
	}
}

// TestRepeated: nothing of a recording of a sentence is a repetition. Of one that is said n times, all but the first
// time is one. So is a sound that does not end, and silence is not.
func TestRepeated(t *testing.T) {
	dir, err := dataset.Sample(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	clips, err := filepath.Glob(dir + "/wavs/*/*.wav")
	if err != nil || len(clips) != 30 {
		t.Fatal(len(clips), err)
	}
	for _, path := range clips {
		row, err := dataset.OpenClip(path, rate)
		if err != nil {
			t.Fatal(err)
		}
		wave := make([]float32, row.Samples)
		if err := dataset.NewDecoder(rate).Decode(wave, row, 0); err != nil {
			t.Fatal(err)
		}
		whole := make([]float64, len(wave))
		for i, x := range wave {
			whole[i] = 32768 * float64(x)
		}
		if got := Repeated(analyze(t, whole)); got != 0 {
			t.Errorf("%s repeats %.2f of itself", path, got)
		}
		said := whole[2000 : 2000+rate*17/20]
		for n := 2; n <= 4; n++ {
			want := 1 - 1/float64(n)
			got := Repeated(analyze(t, slices.Concat(slices.Repeat([][]float64{said}, n)...)))
			if math.Abs(got-want) > 0.15 { // a pause within the passage hides some of it
				t.Errorf("%s, %d times: %.2f repeats itself, want %.2f", path, n, got, want)
			}
		}
	}
	if got := Repeated(analyze(t, tone(3, 180))); math.Abs(got-0.9) > 0.02 {
		t.Errorf("of a sound without an end, %.2f repeats itself", got)
	}
	if got := Repeated(analyze(t, slices.Concat(tone(0.5, 180), make([]float64, 3*rate)))); got != 0 {
		t.Errorf("of silence, %.2f repeats itself", got)
	}
	if got := Repeated(analyze(t, make([]float64, 3*rate))); got != 0 {
		t.Errorf("nothing but silence repeats %.2f of itself", got)
	}
}

// TestAnalyzerRefuses: a sample rate without a voice, and samples that are not finite.
func TestAnalyzerRefuses(t *testing.T) {
	if _, err := NewAnalyzer(1000); err == nil {
		t.Error("a voice at 1 kHz")
	}
	for _, good := range []int{8000, 16000, 24000, 44100, 48000} {
		a, err := NewAnalyzer(good)
		if err != nil {
			t.Errorf("%d Hz: %v", good, err)
			continue
		}
		if _, err := a.Analyze([]float32{0, float32(math.NaN())}); err == nil {
			t.Errorf("%d Hz: NaN is measured", good)
		}
	}
}
