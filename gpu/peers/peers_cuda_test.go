package peers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/gpu/cuda"
)

// rankVariable is the number of a rank, which is a process of this program, and exchangeVariable the folder by which
// they exchange.
const rankVariable, exchangeVariable = "XTTS_HOST_TEST_RANK", "XTTS_HOST_TEST_RANK_FOLDER"

const cudaRanks = 2

// TestProcesses needs a GPU, XTTS_HOST_TEST_GPU: two processes that share it open windows, try them, and make rounds.
func TestProcesses(t *testing.T) {
	if os.Getenv("XTTS_HOST_TEST_GPU") == "" {
		t.Skip("XTTS_HOST_TEST_GPU names no GPU")
	}
	folder, done := t.TempDir(), make(chan error)
	for rank := range cudaRanks {
		go func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcess$", "-test.timeout=100s")
			cmd.Env = append(os.Environ(), rankVariable+"="+strconv.Itoa(rank), exchangeVariable+"="+folder)
			if out, err := cmd.CombinedOutput(); err != nil {
				done <- fmt.Errorf("rank %d: %w\n%s", rank, err, out)
				return
			}
			done <- nil
		}()
	}
	for range cudaRanks {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestProcess is a rank of TestProcesses.
func TestProcess(t *testing.T) {
	rank, err := strconv.Atoi(os.Getenv(rankVariable))
	if err != nil {
		t.Skip("it is part of TestProcesses")
	}
	runtime.LockOSThread()
	c, err := cuda.Open(os.Getenv("XTTS_HOST_TEST_GPU"))
	if err == nil {
		err = c.Bind()
	}
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	exchange := func(own []byte) ([][]byte, error) {
		calls++
		return exchangeFiles(os.Getenv(exchangeVariable), calls, rank, own)
	}
	w, err := Open(Config{Context: c, Rank: rank, Size: cudaRanks, Bytes: proofBytes(proved), Exchange: exchange})
	if err != nil {
		t.Fatal(err)
	}
	p := proof{Window: w}
	err = p.open()
	for round := 2; round < 20 && err == nil; round++ {
		err = errors.Join(p.round(round), p.check(round))
	}
	_, late := exchange(nil)
	if err = errors.Join(err, late, p.close(), w.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

// exchangeFiles exchanges by files, whose names have the number of the call and of the rank.
func exchangeFiles(folder string, call, rank int, own []byte) (all [][]byte, err error) {
	path := func(rank int) string { return filepath.Join(folder, fmt.Sprintf("%d-%d", call, rank)) }
	partial := path(rank) + ".partial"
	if err := errors.Join(os.WriteFile(partial, own, 0o600), os.Rename(partial, path(rank))); err != nil {
		return nil, err
	}
	for other := range cudaRanks {
		data, err := os.ReadFile(path(other))
		for began := time.Now(); err != nil && time.Since(began) < time.Minute; data, err = os.ReadFile(path(other)) {
			time.Sleep(time.Millisecond)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}
