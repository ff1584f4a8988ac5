package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// saverEnv makes the test binary a process that saves to the run folder it names, until it is killed.
const saverEnv = "XTTS_HOST_TEST_SAVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(saverEnv); dir != "" {
		if err := keepSaving(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// bigTensors are some tensors whose values depend on the step, large enough that a kill hits them half written.
func bigTensors(step int64) (params, moments []Tensor) {
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(step + int64(i)*7)
	}
	weight := Tensor{Name: "weight", Shape: []int{512, 512}, Data: data}
	frozen := Tensor{Name: "table", Shape: []int{512, 512}, Data: make([]byte, 1<<20), Frozen: true}
	moment := weight
	moment.Name = Moment("exp_avg", "weight")
	return []Tensor{weight, frozen}, []Tensor{moment}
}

// keepSaving continues from the newest checkpoint and prints on stdout what is saved.
func keepSaving(dir string) error {
	s := NewStore(dir)
	step := int64(0)
	c, _, err := s.Latest()
	if err == nil {
		step = c.State.Step
		c.Close()
	} else if !errors.Is(err, ErrNone) {
		return err
	}
	for {
		step++
		params, moments := bigTensors(step)
		if _, err := s.Save(context.Background(), State{Step: step}, params, moments); err != nil {
			return err
		}
		if _, err := fmt.Println(step); err != nil {
			return err
		}
		if err := s.Prune(2, s.Path(1)); err != nil {
			return err
		}
	}
}

// Whenever a process that saves is killed, the newest checkpoint is intact, nothing that Save had confirmed is lost,
// and the best checkpoint is still there. One folder goes through all the kills.
func TestSavingIsKilled(t *testing.T) {
	dir := t.TempDir()
	s := NewStore(dir)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range nightly.Of(5, 200) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), saverEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() { // it is saving
			t.Fatalf("kill %d: no checkpoint: %v", i, cmd.Wait())
		}
		confirmed := lines.Text()
		time.Sleep(time.Duration(random.IntN(40_000)) * time.Microsecond)
		cmd.Process.Kill()
		for lines.Scan() {
			confirmed = lines.Text()
		}
		io.Copy(io.Discard, out)
		cmd.Wait() // killed
		atLeast, err := strconv.ParseInt(confirmed, 10, 64)
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}

		c, skipped, err := s.Latest()
		if err != nil || len(skipped) > 0 {
			t.Fatalf("kill %d: %v, %v", i, err, skipped)
		}
		if c.State.Step < atLeast {
			t.Errorf("kill %d: step %d was saved, the newest is %d", i, atLeast, c.State.Step)
		}
		params, moments := bigTensors(c.State.Step)
		got := blank(params)
		if err := c.Restore(got, blank(moments)); err != nil {
			t.Errorf("kill %d: %v", i, err)
		}
		if string(got[0].Data) != string(params[0].Data) {
			t.Errorf("kill %d: step %d has the weights of another", i, c.State.Step)
		}
		c.Close()
		best, err := Load(s.Path(1))
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		best.Close()
	}
	if err := s.Prune(1); err != nil {
		t.Fatal(err)
	}
	if left := names(t, filepath.Join(dir, rundir.Checkpoints)); len(left) != 2 || !isFrozen(left[0]) {
		t.Errorf("%v are left, want the frozen weights and a checkpoint", left)
	}
}
