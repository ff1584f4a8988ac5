package host

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/exit"
)

// TestShareOut refuses limits that do not hold what the plugins need.
func TestShareOut(t *testing.T) {
	for _, tt := range []struct {
		limit          int64 // MB
		codes, denoise int   // MB
		want, advice   string
	}{
		{0, 1 << 20, 1 << 20, "", ""}, // without a limit
		{2300, 1000, 300, "", ""},
		{2299, 1000, 300, `out of memory: --data-gpu-memory 2299MB is less than the plugins need by gpu_memory_mb in plugin.json:
  codes: 2 processes x 1000 MB                           2000 MB
  denoise: 1 process x 300 MB                             300 MB
  together                                               2300 MB`, "give --data-gpu-memory 2300 or more, or the plugins fewer processes with --plugin-workers"},
		{3536, 1000, 0, "", ""},
		{3535, 1000, 0, `out of memory: --data-gpu-memory 3535MB leaves plugins without gpu_memory_mb in plugin.json less than a CUDA context takes:
  codes: 2 processes x 1000 MB                           2000 MB
  denoise: 1 process                                not declared
  equal parts of the rest: 3 processes x 512 MB          1536 MB
  together                                               3536 MB`, "give --data-gpu-memory 3536 or more, or the plugins fewer processes with --plugin-workers"},
		{1999, 1000, 0, `out of memory: --data-gpu-memory 1999MB is less than the plugins need by gpu_memory_mb in plugin.json:
  codes: 2 processes x 1000 MB                           2000 MB
  denoise: 1 process                                not declared
  equal parts of the rest: 3 processes x 512 MB          1536 MB
  together                                               3536 MB`, "give --data-gpu-memory 3536 or more, or the plugins fewer processes with --plugin-workers"},
	} {
		err := onDataGPU(t, tt.limit*gpu.MB, tt.codes, tt.denoise).shareOut()
		if tt.want == "" && err != nil {
			t.Errorf("%d MB for %d and %d: %v", tt.limit, tt.codes, tt.denoise, err)
		}
		if tt.want != "" && (err == nil || err.Error() != tt.want || exit.Hint(err) != tt.advice || exit.Code(exit.Refused(err)) != 3) {
			t.Errorf("error:\n%v\nhint: %s\nwant:\n%s\nhint: %s", err, exit.Hint(err), tt.want, tt.advice)
		}
	}
}
