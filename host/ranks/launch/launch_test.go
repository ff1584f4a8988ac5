package launch

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/settings/world"
)

const secret = " XTTS_RANKS_SECRET=0123456789abcdef"

// variables returns those of a text such as "RANK=1 WORLD_SIZE=2".
func variables(text string) func(name string) string {
	all := map[string]string{}
	for _, v := range strings.Fields(text) {
		name, value, _ := strings.Cut(v, "=")
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

// TestFind: the variables of each launcher, as its documentation has them.
func TestFind(t *testing.T) {
	for _, c := range []struct{ name, env, by, address, ranks string }{
		{"nothing", "", "", "", "0/1"},
		{"one process", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0", "", "", "0/1"},
		{
			"torchrun", "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=node1 MASTER_PORT=29500 " +
				"TORCHELASTIC_USE_AGENT_STORE=True", "torchrun", "node1:29501", "5/8 1/4",
		},
		{
			"by hand", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=::1 MASTER_PORT=4000", "torchrun", "[::1]:4000",
			"1/2 1/0",
		},
		{
			"Open MPI on one machine", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 " +
				"OMPI_COMM_WORLD_LOCAL_SIZE=2", "Open MPI", "127.0.0.1:29511", "1/2 1/2",
		},
		{
			"MPICH", "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1 MASTER_ADDR=a", "MPICH", "a:29511",
			"0/2 0/1",
		},
		{
			"srun", "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=1 SLURM_STEP_NODELIST=gpu[08-11,14].x,b",
			"srun", "gpu08.x:29511", "3/4 1/0",
		},
		{"a script of sbatch", "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0", "", "", "0/1"},
		{
			"torchrun in srun", "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 RANK=6 WORLD_SIZE=8 MASTER_ADDR=a", "torchrun",
			"a:29511", "6/8 0/0",
		},
		{
			"Kubeflow", "PET_NODE_RANK=1 PET_NNODES=2 PET_NPROC_PER_NODE=1 PET_MASTER_ADDR=j-0 PET_MASTER_PORT=29500",
			"Kubeflow Trainer", "j-0:29500", "1/2 0/1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Find(variables(c.env + secret))
			if err != nil {
				t.Fatal(err)
			}
			want := world.World{}
			numbers := []*int{&want.Rank, &want.Size, &want.Local, &want.LocalSize}
			for i, text := range strings.FieldsFunc(c.ranks, func(r rune) bool { return r == '/' || r == ' ' }) {
				if err := number(func(string) string { return text }, "test", numbers[i]); err != nil {
					t.Fatal(err)
				}
			}
			if f.MachineName != "" {
				t.Errorf("machine %q", f.MachineName)
			}
			if f.World != want || f.By != c.by || f.Address != c.address {
				t.Errorf("%+v by %q at %q, want %+v by %q at %q", f.World, f.By, f.Address, want, c.by, c.address)
			}
			if (f.Secret == "") != f.Alone() {
				t.Errorf("secret %q", f.Secret)
			}
		})
	}
}

// TestMachine: a rank may have a name for its machine.
func TestMachine(t *testing.T) {
	f, err := Find(variables("RANK=1 WORLD_SIZE=2 MASTER_ADDR=a XTTS_RANKS_MACHINE=left" + secret))
	if err != nil || f.MachineName != "left" {
		t.Errorf("%q, %v", f.MachineName, err)
	}
}

// TestRefused: what cannot be right is an error that names the variable, with a hint, and status 2.
func TestRefused(t *testing.T) {
	const half = "only one of two variables is set: "
	for env, want := range map[string]string{
		"RANK=3" + secret: half + "RANK=3, WORLD_SIZE=", "WORLD_SIZE=3" + secret: half + "RANK=, WORLD_SIZE=3",
		"RANK=2 WORLD_SIZE=2 MASTER_ADDR=a" + secret:                          "RANK=2 and WORLD_SIZE=2",
		"RANK=0 WORLD_SIZE=0":                                                 "WORLD_SIZE=0: a run has ",
		"RANK=x WORLD_SIZE=2 MASTER_ADDR=a" + secret:                          "RANK=x",
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=0" + secret:            "MASTER_PORT=0",
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a":                                   SecretVariable,
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a " + SecretVariable + "=short":      SecretVariable,
		"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4" + secret:              "MASTER_ADDR",
		"PET_NODE_RANK=0 PET_NNODES=2 PET_NPROC_PER_NODE=4 PET_MASTER_ADDR=a": "PET_NPROC_PER_NODE=4",
	} {
		if _, err := Find(variables(env)); err == nil || exit.Code(err) != exit.StatusRefused ||
			!strings.Contains(err.Error(), want) || exit.Hint(err) == "" {
			t.Errorf("%s: %v", env, err)
		}
	}
}
