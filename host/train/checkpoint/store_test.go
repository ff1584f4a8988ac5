package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// someTensors returns weights and moments whose values depend on salt. From 100 on one of the weights is frozen; its
// values depend on the hundreds.
func someTensors(salt int64) (params, moments []Tensor) {
	data := func(n int, kind int64) []byte {
		var b []byte
		for i := range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(salt*1000+kind*100+int64(i))))
		}
		return b
	}
	tensor := func(name string, shape []int, data []byte) Tensor {
		return Tensor{Name: name, Shape: shape, Data: data}
	}
	params = []Tensor{tensor("out.weight", []int{2, 3},
		data(6, 1)), tensor("out.bias", []int{2}, data(2, 2)), tensor("scale",
		nil, data(1, 3))}
	for i, kind := range []string{"exp_avg", "exp_avg_sq"} {
		for _, p := range params {
			moments = append(moments, tensor(Moment(kind, p.Name), p.Shape, data(len(p.Data)/4, int64(4+i))))
		}
	}
	if salt >= 100 {
		salt /= 100
		params = append(params,
			Tensor{Name: "table", DType: manifest.BF16, Shape: []int{4, 2}, Data: data(4, 9), Frozen: true})
	}
	return params, moments
}

// blank returns tensors of the same shapes with other values.
func blank(tensors []Tensor) []Tensor {
	out := slices.Clone(tensors)
	for i := range out {
		out[i].Data = bytes.Repeat([]byte{0xee}, len(out[i].Data))
	}
	return out
}

func save(t testing.TB, s *Store, step, salt int64) string {
	t.Helper()
	params, moments := someTensors(salt)
	path, err := s.Save(context.Background(), someState(step), params, moments)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// check fails unless c is the checkpoint that save made with step and salt.
func check(t testing.TB, c *Checkpoint, step, salt int64) {
	t.Helper()
	if want := someState(step); !reflect.DeepEqual(c.State, want) {
		t.Errorf("state %+v\nwant %+v", c.State, want)
	}
	wantParams, wantMoments := someTensors(salt)
	params, moments := blank(wantParams), blank(wantMoments)
	if err := c.Restore(params, moments); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(params, wantParams) || !reflect.DeepEqual(moments, wantMoments) {
		t.Errorf("step %d: other weights or moments than saved", step)
	}
}

func latest(t testing.TB, s *Store) (*Checkpoint, []Skipped) {
	t.Helper()
	c, skipped, err := s.Latest()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, skipped
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	got, err := folderFS(dir).ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSaveAndLoad(t *testing.T) {
	run := t.TempDir()
	s := NewStore(run)
	if _, _, err := s.Latest(); !errors.Is(err, ErrNone) {
		t.Errorf("a run without checkpoints gave %v", err)
	}
	for _, step := range []int64{5, 999_999, 1_000_000} {
		path := save(t, s, step, step%10)
		c, skipped := latest(t, s)
		if c.Path != path || len(skipped) != 0 {
			t.Errorf("latest is %s (skipped %v), want %s", c.Path, skipped, path)
		}
		check(t, c, step, step%10)
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	if got, want := names(t, filepath.Join(run, rundir.Checkpoints)), []string{
		"step-000005", "step-1000000", "step-999999",
	}; !slices.Equal(got, want) {
		t.Errorf("folders %v, want %v", got, want)
	}
}

func TestManifestIsWhatSha256sumReads(t *testing.T) {
	tool, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("no sha256sum on this machine")
	}
	cmd := exec.Command(tool, "--strict", "-c", manifestFile)
	cmd.Dir = save(t, NewStore(t.TempDir()), 1, 1)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestEqualRunsSaveEqualFiles(t *testing.T) {
	one, two := save(t, NewStore(t.TempDir()), 3, 3), save(t, NewStore(t.TempDir()), 3, 3)
	for _, name := range names(t, one) {
		a, errA := os.ReadFile(filepath.Join(one, name))
		b, errB := os.ReadFile(filepath.Join(two, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%v, %v)", name, errA, errB)
		}
		if bytes.Contains(a, []byte(one)) {
			t.Errorf("%s contains its path", name)
		}
	}
}

func TestSaveSameStep(t *testing.T) {
	s := NewStore(t.TempDir())
	path := save(t, s, 1, 1)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, 1, 1)
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("saving the same again replaced the folder (%v)", err)
	}
	save(t, s, 1, 2)
	c, _ := latest(t, s)
	check(t, c, 1, 2)
	if got := names(t, s.dir); len(got) != 1 {
		t.Errorf("folders %v", got)
	}
	// A damaged one is replaced, too.
	if err := os.Truncate(filepath.Join(path, paramsFile), 9); err != nil {
		t.Fatal(err)
	}
	save(t, s, 1, 2)
	c, _ = latest(t, s)
	check(t, c, 1, 2)
}

func TestLatestSkipsDamage(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"truncated weights": func(dir string) error { return os.Truncate(filepath.Join(dir, paramsFile), 20) },
		"flipped bit": func(dir string) error {
			file := filepath.Join(dir, optimizerFile)
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			b[len(b)-1] ^= 1
			return os.WriteFile(file, b, 0o666)
		},
		"no MANIFEST":    func(dir string) error { return os.Remove(filepath.Join(dir, manifestFile)) },
		"empty MANIFEST": func(dir string) error { return os.Truncate(filepath.Join(dir, manifestFile), 0) },
		"no state":       func(dir string) error { return os.Remove(filepath.Join(dir, stateFile)) },
		"another state": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, stateFile), []byte("{}"), 0o666)
		},
		"empty folder": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewStore(t.TempDir())
			save(t, s, 1, 1)
			newest := save(t, s, 2, 2)
			if err := damage(newest); err != nil {
				t.Fatal(err)
			}
			c, skipped := latest(t, s)
			check(t, c, 1, 1)
			if len(skipped) != 1 || skipped[0].Path != newest || !errors.Is(skipped[0].Err, ErrDamaged) {
				t.Errorf("skipped %v", skipped)
			}
			if err := damage(c.Path); err != nil {
				t.Fatal(err)
			}
			if _, skipped, err := s.Latest(); !errors.Is(err, ErrNone) || !errors.Is(err, ErrDamaged) ||
				len(skipped) != 2 {
				t.Errorf("nothing left gave %v, skipped %v", err, skipped)
			} else if text := err.Error(); !strings.Contains(text, "no intact checkpoint among 2:\nstep-000002: ") ||
				!strings.Contains(text, "\nstep-000001: ") || strings.Contains(text, "damaged checkpoint") {
				t.Errorf("nothing left gave %v", err)
			}
		})
	}
}

func TestLoadOfAnotherStepsFolder(t *testing.T) {
	path := save(t, NewStore(t.TempDir()), 1, 1)
	renamed := filepath.Join(filepath.Dir(path), "step-000009")
	if err := os.Rename(path, renamed); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(renamed); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		t.Errorf("a missing folder gave %v", err)
	}
}

func TestRestoreRefusesOthers(t *testing.T) {
	path := save(t, NewStore(t.TempDir()), 1, 1)
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, change := range map[string]func(params, moments []Tensor) ([]Tensor, []Tensor){
		"another type": func(p, m []Tensor) ([]Tensor, []Tensor) { p[0].DType = manifest.BF16; return p, m },
		"one fewer":    func(p, m []Tensor) ([]Tensor, []Tensor) { return p[1:], m },
		"one more": func(p, m []Tensor) ([]Tensor, []Tensor) {
			return append(p, Tensor{Name: "new", Data: make([]byte, 4)}), m
		},
		"another shape": func(p, m []Tensor) ([]Tensor, []Tensor) { p[0].Shape = []int{3, 2}; return p, m },
		"another size":  func(p, m []Tensor) ([]Tensor, []Tensor) { p[0].Data = p[0].Data[4:]; return p, m },
		"no moments":    func(p, m []Tensor) ([]Tensor, []Tensor) { return p, nil },
	} {
		params, moments := someTensors(1)
		params, moments = blank(params), blank(moments)
		last := params[1]
		if err := c.Restore(change(params, moments)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if last.Data[0] != 0xee {
			t.Errorf("%s: tensors were filled", name)
		}
	}
}

func TestPrune(t *testing.T) {
	s := NewStore(t.TempDir())
	if err := s.Prune(1); err != nil {
		t.Errorf("nothing to prune gave %v", err)
	}
	var paths []string
	for step := range int64(6) {
		paths = append(paths, save(t, s, step, step))
	}
	foreign := filepath.Join(s.dir, "notes.old")
	if err := os.WriteFile(foreign, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		keep  int
		paths []string
		want  []string
	}{
		{0, nil, []string{"0", "1", "2", "3", "4", "5"}},
		{4, []string{paths[0], paths[5]}, []string{"0", "1", "2", "3", "4", "5"}},
		{2, []string{paths[1]}, []string{"1", "4", "5"}},
		{1, nil, []string{"5"}},
	} {
		if err := s.Prune(c.keep, c.paths...); err != nil {
			t.Fatal(err)
		}
		want := []string{"notes.old"}
		for _, digit := range c.want {
			want = append(want, "step-00000"+digit)
		}
		if got := names(t, s.dir); !slices.Equal(got, want) {
			t.Errorf("keep %d and %v: %v left, want %v", c.keep, c.paths, got, want)
		}
	}
}

func TestSaveIsCancelled(t *testing.T) {
	s := NewStore(t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	params, moments := someTensors(1)
	if _, err := s.Save(ctx, someState(1), params, moments); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := names(t, s.dir); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}

func TestKept(t *testing.T) {
	s := NewStore(t.TempDir())
	if got := s.Kept(3); got != "" {
		t.Errorf("without any: %s", got)
	}
	for _, step := range []int64{2, 5, 9} {
		if err := os.MkdirAll(s.Path(step), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Kept(5); got != s.Path(5) {
		t.Errorf("that of step 5 is there, got %s", got)
	}
	if got := s.Kept(7); got != s.Path(2) {
		t.Errorf("that of step 7 is not there: got %s, want the oldest", got)
	}
}

func TestLatestNamesFive(t *testing.T) {
	s := NewStore(t.TempDir())
	for step := range int64(7) {
		if err := os.MkdirAll(s.Path(step), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := s.Latest()
	if err == nil || !strings.HasSuffix(err.Error(), "among 7:\nstep-000006: MANIFEST is missing\n"+
		"step-000005: MANIFEST is missing\nstep-000004: MANIFEST is missing\nstep-000003: MANIFEST is missing\n"+
		"step-000002: MANIFEST is missing\nand 2 more") {
		t.Errorf("%v", err)
	}
}
