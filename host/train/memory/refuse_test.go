package memory

import (
	"fmt"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

func TestRefuse(t *testing.T) {
	const (
		less   = ", then a smaller --buffer-size than 50, then --accumulate 4 with a smaller batch"
		arenas = "a batch of 64 rows in bucket 2 needs more memory than the 100 MB that --model-gpu-memory 1120MB " +
			"leaves for it: "
	)
	limited := Plan{Limit: 1120 * gpu.MB, Arenas: 60 * gpu.MB, Slots: 40 * gpu.MB}
	trial := func(err error) error {
		return fmt.Errorf("model: %w", &train.TooLargeError{Bucket: 2, Err: fmt.Errorf("run: %w", err)})
	}
	for name, tt := range map[string]struct {
		err        error
		plan       Plan
		use        Use
		rows       int
		sure       bool
		want, hint string
	}{
		"the limit, in a trial run": {
			trial(ort.ErrOutOfMemory), limited, Use{}, 17, true, arenas + "run: out of memory",
			"try --batch-size 17, the largest that fits" + less + ", then --model-gpu-memory above 1120",
		},
		"the search was stopped": {trial(ort.ErrOutOfMemory), limited, Use{}, 17, false, arenas + "run: out of memory",
			"try --batch-size 17, which fits" + less + ", then --model-gpu-memory above 1120"},
		"nothing was tried": {trial(ort.ErrOutOfMemory), limited, Use{}, 0, false, arenas + "run: out of memory",
			"try a smaller --batch-size" + less + ", then --model-gpu-memory above 1120"},
		"no row": {
			trial(ort.ErrOutOfMemory), limited, Use{}, 0, true,
			"not even one row fits: " + arenas + "run: out of memory",
			"try --model-gpu-memory above 1120",
		},
		"the table": {
			limited.Check(Use{Graphs: 101 * gpu.MB}), limited, Use{Graphs: 101 * gpu.MB}, 17, true,
			limited.Check(Use{Graphs: 101 * gpu.MB}).Error(),
			"try --batch-size 17, the largest that fits" + less + ", then --model-gpu-memory 1177",
		},
		"the card, under a limit": {
			gpu.ErrOutOfMemory, limited, Use{}, 17, true,
			"a batch of 64 rows needs more memory than the GPU has: out of GPU memory",
			"try --batch-size 17, the largest that fits" + less,
		},
		"the card": {
			trial(ort.ErrOutOfMemory), Plan{}, Use{}, 0, true, "not even one row fits: a batch of 64 rows in " +
				"bucket 2 needs more memory than the GPU has: run: out of memory",
			"try a GPU with more memory",
		},
	} {
		err := Batch{Rows: 64, Buffer: 50, Accumulate: 2}.Refuse(tt.err, tt.plan, tt.use, tt.rows, tt.sure)
		if err.Error() != tt.want || exit.Hint(err) != tt.hint || exit.Code(exit.Refused(err)) != 3 {
			t.Errorf("%s:\n%v\nhint: %s\nexit status %d; want\n%s\nhint: %s", name, err, exit.Hint(err),
				exit.Code(exit.Refused(err)), tt.want, tt.hint)
		}
	}
}
