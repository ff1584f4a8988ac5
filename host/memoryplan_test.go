package host

import (
	"errors"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

func TestMemoryPlan(t *testing.T) {
	p := memoryPlan{limit: 2048 * gpu.MB, arenas: 400 * gpu.MB, slots: 20 * gpu.MB}
	if room, err := p.room(); err != nil || room != (2048-400-20-920)*gpu.MB {
		t.Errorf("room of %d MB, %v", room/gpu.MB, err)
	}
	if err := p.check(708 * gpu.MB); err != nil {
		t.Error(err)
	}
	if room, err := (memoryPlan{arenas: 1 << 40}).room(); room != 0 || err != nil {
		t.Errorf("without a limit: room %d, %v", room, err)
	}
	refused := func(err error, want, advice string) {
		t.Helper()
		if err == nil || err.Error() != want || ExitCode(refusal{err}) != 3 || Hint(err) != advice {
			t.Errorf("error:\n%v\nhint: %s\nwant:\n%s\nhint: %s", err, Hint(err), want, advice)
		}
	}
	refused(p.check(709*gpu.MB), `out of memory: --model-gpu-memory 2048MB is not enough:
  weights, gradients, optimizer state                     400 MB
  device slots                                             20 MB
  CUDA and its libraries                                  920 MB
  what the graphs compute, by trial of every bucket       709 MB
  together                                               2049 MB`, "give --model-gpu-memory 2151 or more, or a smaller --batch-size")
	p.limit = 1000 * gpu.MB
	_, err := p.room()
	refused(err, `out of memory: --model-gpu-memory 1000MB leaves nothing for what the graphs compute:
  weights, gradients, optimizer state                     400 MB
  device slots                                             20 MB
  CUDA and its libraries                                  920 MB
  together                                               1340 MB`, "give --model-gpu-memory 1407 or more, or a smaller --batch-size")
}

// TestTooLarge: the batch that is named fits by the shapes of the graph, and one more row does not.
func TestTooLarge(t *testing.T) {
	b, err := ortgraphs.Load("../ortgraphs/testdata/pico")
	if err != nil {
		t.Fatal(err)
	}
	j := &job{bundle: b, cfg: &config.Config{BatchSize: 64, BufferSize: 50, Accumulate: 1}}
	bucket := len(b.Manifest.Buckets) - 1
	room := int(b.Step(bucket, 24).ActivationBytes) + 1
	p := memoryPlan{limit: room + libraries}
	err = j.tooLarge(&train.TooLargeError{Bucket: bucket, Err: ort.ErrOutOfMemory}, p)
	if !errors.Is(err, ort.ErrOutOfMemory) || !strings.HasPrefix(err.Error(), "a batch of 64 rows in bucket 2 needs more memory than the ") {
		t.Errorf("error %v", err)
	}
	if h := Hint(err); !strings.HasPrefix(h, "try --batch-size 24, the largest that should fit, then a smaller --buffer-size than 50, then --accumulate 2 ") ||
		!strings.HasSuffix(h, ", then --model-gpu-memory above "+strings.TrimSuffix(strings.Split(err.Error(), "--model-gpu-memory ")[1], "MB leaves for it: out of memory")) {
		t.Errorf("hint %s for %v", h, err)
	}
}
