package resume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// TestBack: the command has a lower learning rate than the run, allows every setting that has changed since the
// checkpoint, and takes groups back that came later.
func TestBack(t *testing.T) {
	plain := map[string]string{
		"optimizer": `["adamw",0.001,[0.9,0.999],1e-8,0,0.01,1]`, "data": "a", "schedule": `["constant",0]`,
	}
	grouped := map[string]string{
		"optimizer": `["adamw",0.001,[0.9,0.999],1e-8,0,0.01,1,{"groups":[{"match":["a"],"lr_factor":100000}]}]`,
		"data":      "a", "schedule": `["constant",0]`,
	}
	raised := map[string]string{
		"optimizer": `["adamw",5,[0.9,0.999],1e-8,0,0.01,1]`, "data": "b", "schedule": `["constant",0]`,
	}
	faster := map[string]string{"optimizer": raised["optimizer"], "data": "a", "schedule": raised["schedule"]}
	at := func(hashes map[string]string) *checkpoint.Checkpoint {
		return &checkpoint.Checkpoint{
			State: checkpoint.State{Step: 40, Hashes: hashes, Schedule: schedule.Schedule{BaseLR: 0.001}},
		}
	}
	for want, b := range map[string]Back{
		"xtts-host --resume run@40 --allow lr --lr 0.0001": {
			Checkpoint: at(plain), Now: plain, LR: 0.001, Usual: 0.003,
		},
		"xtts-host --resume run@40 --allow lr,min-lr --lr 0.0001 --min-lr 0": {
			Checkpoint: at(plain), Now: plain, LR: 0.001, MinLR: 0.0005,
		},
		"xtts-host --resume run@40 --allow data --lr 0.001": {
			Checkpoint: at(plain), Now: raised, LR: 5, Usual: 0.003,
		},
		"xtts-host --resume run@40 --lr 0.001": {
			Checkpoint: at(plain), Now: faster, LR: 5,
		},
		"xtts-host --resume run@40 --allow lr --lr 0.0001 --lr-factor ''": {
			Checkpoint: at(plain), Now: grouped, LR: 0.001, LRFactor: true,
		},
		"xtts-host --resume run@40 --allow lr --lr 3.33e-05": {
			Checkpoint: at(grouped), Now: grouped, LR: 0.000333, LRFactor: true,
		},
		"xtts-host --resume run@40 --allow lr,groups --lr 0.0001": {
			Checkpoint: at(grouped), Now: plain, LR: 0.001,
		},
		"xtts-host --config run/config.yaml --lr 0.003 --run-dir run-2": {
			Now: plain, LR: 1000, Usual: 0.003,
		},
		"xtts-host --config run/config.yaml --lr 0.003 --init 'my run@best' --run-dir run-2": {
			Now: plain, LR: 1000, Usual: 0.003, Init: "my run@best",
		},
		"xtts-host --resume run@40 --allow lr --lr 0.0002": {
			Checkpoint: at(plain), Now: plain, LR: 0.0005, Usual: 0.0002, Init: "a",
		},
		"xtts-host --config run/config.yaml --lr 0.0003 --min-lr 0 --run-dir run-2": {
			Now: plain, LR: 0.003, MinLR: 0.001, Usual: 0.003,
		},
	} {
		b.Folder = "run"
		if got := b.Command(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	dir := filepath.Join(t.TempDir(), "a run")
	for _, there := range []string{dir + "-2", dir + "-3"} {
		if err := os.Mkdir(there, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := (Back{Folder: dir, LR: 1}).Command(), "xtts-host --config '"+dir+
		"/config.yaml' --lr 0.1 --run-dir '"+dir+"-4'"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
