// Package launch finds out which rank of a run this process is, from the environment variables of the launcher that
// started it: torchrun, mpirun of Open MPI, of MPICH or of Intel MPI, srun, or a job of Kubeflow Trainer. It also
// starts the ranks of a run on several GPUs of one machine, with variables of the same kind. docs/launchers.md has a
// table of the variables.
package launch

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// SecretVariable names the variable with what all ranks of a run know and no one else.
const SecretVariable = "XTTS_RANKS_SECRET"

// defaultPort is that of rank 0 where the launcher names none.
const defaultPort = "29511"

// MachineVariable names the variable with a name for the machine of a rank. Ranks with other names share no plugins.
const MachineVariable = "XTTS_RANKS_MACHINE"

// Found is what the environment says of the run that this process belongs to.
type Found struct {
	world.World
	By          string // what started this rank
	Address     string // host and port where rank 0 listens
	Secret      string
	MachineName string // mostly none
}

// kind is a kind of launcher. It counts if both variables of rank and size are set.
type kind struct {
	name                         string
	rank, size, local, localSize string
}

// kinds are the launchers in the order in which they count: torchrun may run in a step of srun.
var kinds = []kind{
	{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
	{
		"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE",
	},
	{"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	// srun sets SLURM_STEP_NUM_TASKS for the processes of a step. In the script of sbatch, SLURM_PROCID is 0 and
	// SLURM_NTASKS is set although it is one process.
	{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
}

// Find returns the rank of this process. Without a launcher, or with one that starts one process, that is a world of
// one, and nothing else is set. get returns the value of a variable, "" if it is not set.
func Find(get func(name string) string) (Found, error) {
	f, err := find(get)
	if err != nil || f.Alone() {
		return Found{World: world.World{Size: 1}}, exit.Refused(err)
	}
	if f.Address, err = address(f, get); err != nil {
		return f, exit.Refused(err)
	}
	f.MachineName = get(MachineVariable)
	if f.Secret = get(SecretVariable); len(f.Secret) < minSecret {
		return f, exit.Refused(hint.Errorf("before the launcher: export "+SecretVariable+"=$(openssl rand -hex 16); "+
			"mpirun of Open MPI also needs -x "+SecretVariable,
			"the run has %d ranks (variables of %s), but %s has no secret of %d characters or more that they share",
			f.Size, f.By, SecretVariable, minSecret))
	}
	return f, nil
}

// minSecret is the length below which a secret could be guessed.
const minSecret = 16

// find returns rank and size.
func find(get func(name string) string) (Found, error) {
	if (get("RANK") == "") != (get("WORLD_SIZE") == "") && get(SecretVariable) != "" {
		return Found{}, hint.Errorf("set RANK and WORLD_SIZE, or unset both to train with one process",
			"only one of two variables is set: RANK=%s, WORLD_SIZE=%s", get("RANK"),
			get("WORLD_SIZE"))
	}
	for _, k := range kinds {
		if get(k.rank) == "" || get(k.size) == "" {
			continue
		}
		f := Found{By: k.name}
		for _, v := range []struct {
			name string
			to   *int
		}{{k.rank, &f.Rank}, {k.size, &f.Size}, {k.local, &f.Local}, {k.localSize, &f.LocalSize}} {
			if err := number(get, v.name, v.to); err != nil {
				return f, err
			}
		}
		if f.Size == 0 {
			return f, hint.Errorf(fmt.Sprintf("unset %s and %s to train with one process", k.rank, k.size),
				"%s=0: a run has at least one rank", k.size)
		}
		if err := f.Check(); err != nil {
			return f, hint.Errorf(fmt.Sprintf("count ranks from 0: the last of %d is %d; unset both variables if no "+
				"launcher has set them", f.Size, f.Size-1),
				"%s=%s and %s=%s: %w", k.rank, get(k.rank), k.size, get(k.size), err)
		}
		return f, nil
	}
	return pod(get)
}

// pod is the rank of a pod of Kubeflow Trainer, which sets variables for torchrun: they are those of a pod, not those
// of a process.
func pod(get func(name string) string) (f Found, err error) {
	if get("PET_NODE_RANK") == "" || get("PET_NNODES") == "" {
		return Found{World: world.World{Size: 1}}, nil
	}
	if per := get("PET_NPROC_PER_NODE"); per != "" && per != "1" {
		return f, hint.Errorf("start the ranks of a pod with torchrun --no-python, or set numProcPerNode: 1",
			"PET_NPROC_PER_NODE=%s: a pod has several ranks, and this process is started by none of their launchers",
			per)
	}
	f = Found{By: "Kubeflow Trainer"}
	if err = number(get, "PET_NODE_RANK", &f.Rank); err == nil {
		err = number(get, "PET_NNODES", &f.Size)
	}
	if err == nil {
		err = f.Check()
	}
	f.LocalSize = 1
	return f, err
}

// number reads a variable that has a number. One that is not set leaves it as it is.
func number(get func(name string) string, name string, to *int) error {
	text := get(name)
	if name == "" || text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return hint.Errorf("unset it if no launcher has set it", "%s=%s: not a number of ranks", name, text)
	}
	*to = n
	return nil
}

// address returns where rank 0 listens.
func address(f Found, get func(name string) string) (string, error) {
	host := cmp.Or(get("MASTER_ADDR"), get("PET_MASTER_ADDR"))
	port := cmp.Or(get("MASTER_PORT"), get("PET_MASTER_PORT"), defaultPort)
	if host == "" && f.By == "srun" {
		host = firstHost(get("SLURM_STEP_NODELIST"))
	}
	if host == "" && f.LocalSize == f.Size {
		host = "127.0.0.1"
	}
	if host == "" {
		return "", hint.Errorf("name the machine of rank 0: export MASTER_ADDR=127.0.0.1 if all ranks are on this "+
			"one, or mpirun -x MASTER_ADDR=$(hostname) ...",
			"the run has %d ranks (variables of %s), but MASTER_ADDR does not say where rank 0 is", f.Size, f.By)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", hint.Errorf("name a port from 1 to 65534", "MASTER_PORT=%s: not a port", port)
	}
	// At MASTER_PORT, torchrun itself listens.
	if strings.EqualFold(get("TORCHELASTIC_USE_AGENT_STORE"), "true") {
		n++
	}
	return net.JoinHostPort(host, fmt.Sprint(n)), nil
}

// firstHost returns the first name of a list of Slurm, such as "gpu[08-11,14],cpu1".
func firstHost(list string) string {
	name, rest, ranges := strings.Cut(list, "[")
	if first, _, several := strings.Cut(name, ","); several || !ranges {
		return first
	}
	inside, after, _ := strings.Cut(rest, "]")
	first := inside[:strings.IndexFunc(inside+",", func(r rune) bool { return r == ',' || r == '-' })]
	after, _, _ = strings.Cut(after, ",")
	return name + first + after
}
