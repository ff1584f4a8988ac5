package memory

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
)

func TestMemoryPlan(t *testing.T) {
	p := Plan{Limit: 2048 * gpu.MB, Arenas: 400 * gpu.MB, Slots: 20 * gpu.MB}
	if room, err := p.Room(); err != nil || room != (2048-400-20-920)*gpu.MB {
		t.Errorf("room of %d MB, %v", room/gpu.MB, err)
	}
	if err := p.Check(Use{Graphs: 708 * gpu.MB}); err != nil {
		t.Error(err)
	}
	if room, err := (Plan{Arenas: 1 << 40}).Room(); room != 0 || err != nil {
		t.Errorf("without a limit: room %d, %v", room, err)
	}
	refused := func(err error, want, advice string) {
		t.Helper()
		if err == nil || err.Error() != want || exit.Code(exit.Refused(err)) != 3 || exit.Hint(err) != advice {
			t.Errorf("error:\n%v\nhint: %s\nwant:\n%s\nhint: %s", err, exit.Hint(err), want, advice)
		}
	}
	refused(p.Check(Use{Graphs: 709 * gpu.MB}), `out of memory: --model-gpu-memory 2048MB is not enough:
  weights, gradients, optimizer state                     400 MB
  device slots                                             20 MB
  CUDA and its libraries, expected                        920 MB
  graphs, measured in trial runs of all buckets           709 MB
  together                                               2049 MB`,
		"give --model-gpu-memory 2151 or more, or a smaller --batch-size")
	// The driver's figure decides if there is one: here CUDA takes 1000 MB more than expected.
	if err := p.Check(Use{Graphs: 708 * gpu.MB, Process: (2048 - 16) * gpu.MB}); err != nil {
		t.Error(err)
	}
	refused(p.Check(Use{Graphs: 100 * gpu.MB, Process: 2440 * gpu.MB}),
		`out of memory: --model-gpu-memory 2048MB is not enough:
  weights, gradients, optimizer state                     400 MB
  device slots                                             20 MB
  CUDA, its libraries and CUDA graphs, by the driver     1936 MB
  graphs, measured in trial runs of all buckets           100 MB
  together                                               2456 MB`,
		"give --model-gpu-memory 2578 or more, or a smaller --batch-size")
	// Samples are loaded after the trial runs: before, the driver's figure lacks them, and after, has them.
	speaking, spoken := p, 30*gpu.MB
	speaking.Samples = 50 * gpu.MB
	before := Use{Graphs: 100 * gpu.MB, Process: 1900 * gpu.MB}
	with, without := speaking.Left(before), p.Left(before)
	if err := speaking.Check(before); err != nil || without != (2048-1900-16)*gpu.MB || with != without-50*gpu.MB {
		t.Errorf("%d MB are left with samples, %d without, %v", with/gpu.MB, without/gpu.MB, err)
	}
	left := speaking.Left(Use{Graphs: 100 * gpu.MB, Process: 2030 * gpu.MB})
	if left != 1 || (Plan{}).Left(before) != 0 {
		t.Errorf("of a limit that is exceeded, %d bytes are left", left)
	}
	if err := speaking.Check(Use{Graphs: 100 * gpu.MB, Process: (2048 - 16) * gpu.MB, Spoken: &spoken}); err != nil {
		t.Error(err)
	}
	refused(speaking.Check(Use{Graphs: 100 * gpu.MB, Process: 2040 * gpu.MB, Spoken: &spoken}),
		`out of memory: --model-gpu-memory 2048MB is not enough:
  weights, gradients, optimizer state                     400 MB
  device slots                                             20 MB
  weights that --samples copies                            50 MB
  CUDA, its libraries and CUDA graphs, by the driver     1456 MB
  graphs, measured in trial runs of all buckets           100 MB
  --samples, measured with the longest sentence            30 MB
  together                                               2056 MB`,
		"give --model-gpu-memory 2158 or more, or a smaller --batch-size, or no --samples")
	p.Limit = 1000 * gpu.MB
	_, err := p.Room()
	refused(err, `out of memory: --model-gpu-memory 1000MB leaves no memory for the graphs:
  weights, gradients, optimizer state                     400 MB
  device slots                                             20 MB
  CUDA and its libraries, expected                        920 MB
  together                                               1340 MB`,
		"give --model-gpu-memory 1407 or more, or a smaller --batch-size")
}
