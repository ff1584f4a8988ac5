package memory

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Batch is a batch that did not fit, with the other settings that need memory.
type Batch struct{ Rows, Buffer, Accumulate int }

// Refuse returns the refusal of a batch. err is the reason; u is measured if all graphs have run.
// rows of the batch fit, and sure says that one more row does not.
func (b Batch) Refuse(err error, p Plan, u Use, rows int, sure bool) error {
	room, _ := p.Room()
	limited := room > 0 && errors.Is(err, ort.ErrOutOfMemory) // the limit of ONNX Runtime's arenas
	if u.Graphs == 0 {                                        // an allocation failed
		batch, has := "a batch of "+units.Count(b.Rows, "row"), "the GPU has"
		if large, ok := errors.AsType[*train.TooLargeError](err); ok {
			batch += fmt.Sprintf(" in bucket %d", large.Bucket)
			err = large.Err
		}
		if limited {
			has = fmt.Sprintf("the %d MB that --model-gpu-memory %dMB leaves for it", room/gpu.MB, p.Limit/gpu.MB)
		}
		err = fmt.Errorf("%s needs more memory than %s: %w", batch, has, err)
	}
	var advice []string
	switch {
	case rows > 0 && sure:
		advice = append(advice, fmt.Sprintf("--batch-size %d, the largest that fits", rows))
	case rows > 0:
		advice = append(advice, fmt.Sprintf("--batch-size %d, which fits", rows))
	case !sure:
		advice = append(advice, "a smaller --batch-size")
	}
	if len(advice) > 0 {
		advice = append(advice, fmt.Sprintf("a smaller --buffer-size than %d", b.Buffer),
			fmt.Sprintf("--accumulate %d with a smaller batch", 2*b.Accumulate))
	} else {
		err = fmt.Errorf("not even one row fits: %w", err)
	}
	switch {
	case u.Graphs > 0:
		advice = append(advice, fmt.Sprintf("--model-gpu-memory %d", p.Need(u)))
	case limited:
		advice = append(advice, fmt.Sprintf("--model-gpu-memory above %d", p.Limit/gpu.MB))
	case len(advice) == 0:
		advice = append(advice, "a GPU with more memory")
	}
	return hint.Errorf("try "+strings.Join(advice, ", then "), "%w", err)
}
