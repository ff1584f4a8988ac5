package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Mode says whether plugins are confined. The empty Mode is Auto.
type Mode string

const (
	// Auto confines by what the kernel offers.
	Auto Mode = "auto"
	// On starts no plugin where the kernel lacks Landlock for files, or seccomp.
	On Mode = "on"
	// Off confines nothing.
	Off Mode = "off"
)

// Report says what is confined on this machine.
type Report struct {
	Mode Mode `json:"mode"`
	// Holds are the restrictions that hold, with what enforces them; Missing those that do not, with the reason.
	Holds   []Fact `json:"holds"`
	Missing []Fact `json:"missing"`
}

// Fact is one restriction: Files, Network, Calls, Signals or Processes.
type Fact struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// The restrictions.
const (
	Files     = "files"
	Network   = "network"
	Calls     = "system calls"
	Signals   = "signals"
	Processes = "number of processes"
)

// Confines reports whether a restriction holds.
func (r Report) Confines(what string) bool {
	return slices.ContainsFunc(r.Holds, func(f Fact) bool { return f.What == what })
}

// Lines are the report for people: what holds, and a line for each restriction that does not.
func (r Report) Lines() []string {
	if r.Mode == Off {
		return []string{"off (--sandbox off): plugins can do what you can do"}
	}
	var names []string
	for _, f := range r.Holds {
		names = append(names, f.What)
	}
	lines := []string{string(r.Mode) + ": confines " + cmp.Or(strings.Join(names, ", "), "nothing")}
	for _, f := range r.Missing {
		lines = append(lines, "not "+f.What+": "+f.Why)
	}
	return lines
}

// kernel is what confines processes on this machine.
type kernel struct {
	abi     int    // of Landlock; 0: none
	noFiles string // why there is none
	noCalls string // why there is no seccomp; empty: there is
	tasks   tasks
	noTasks string // why the number of processes is not limited; empty: it is
}

// The versions of Landlock's ABI (landlock(7)) with which it can restrict something more.
const (
	abiRefer    = 2
	abiTruncate = 3
	abiTCP      = 4
	abiScope    = 6
	abiUnix     = 9
)

// detect looks at the kernel once.
var detect = sync.OnceValue(func() (k kernel) {
	var err error
	if k.abi, err = ll.LandlockGetABIVersion(); err != nil {
		k.abi, k.noFiles = 0, fmt.Sprintf("the kernel has no Landlock: %v", err)
	}
	if k.abi >= abiScope {
		// The kernels before the second fix let no thread signal the others of its own process (go-landlock's rule).
		if fixed, err := ll.LandlockGetErrata(); err != nil || fixed&2 == 0 {
			k.abi = abiScope - 1
		}
	}
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if err := seccomp(unix.SECCOMP_GET_ACTION_AVAIL, 0, &action); err != nil {
		k.noCalls = fmt.Sprintf("the kernel has no seccomp filters: %v", err)
	}
	k.tasks, k.noTasks = findTasks(exempt())
	return k
})

// Describe says what a mode confines on this machine.
func Describe(m Mode) Report { return describe(m, detect()) }

func describe(m Mode, k kernel) Report {
	r := Report{Mode: cmp.Or(m, Auto), Holds: []Fact{}, Missing: []Fact{}}
	is := func(holds bool, what, by, why string) {
		switch {
		case r.Mode == Off:
			r.Missing = append(r.Missing, Fact{what, "--sandbox off"})
		case holds:
			r.Holds = append(r.Holds, Fact{what, by})
		default:
			r.Missing = append(r.Missing, Fact{what, why})
		}
	}
	landlock := fmt.Sprintf("Landlock %d", k.abi)
	seccomp := "seccomp"
	noFiles := k.noFiles
	if k.abi == 0 { // a plugin can change the host's memory by /proc, and programs that you start later
		seccomp += ", only against errors of plugins"
		noFiles += "; so what holds does so only against errors of plugins, not against a hostile one"
	}
	is(k.abi > 0, Files, landlock, noFiles)
	tcp := k.noCalls
	if k.abi >= abiTCP {
		tcp += "; TCP alone is refused, by " + landlock
	}
	is(k.noCalls == "", Network, seccomp, tcp)
	is(k.noCalls == "", Calls, seccomp, k.noCalls)
	is(k.abi >= abiScope, Signals, landlock, fmt.Sprintf("the kernel has Landlock %d, and they need %d (Linux 6.12)",
		k.abi, abiScope))
	is(k.noTasks == "", Processes, k.tasks.String(), k.noTasks)
	return r
}

// Check refuses On where the kernel lacks what it promises. The error has a hint.
func (m Mode) Check() error { return m.check(detect()) }

// check refuses On where the kernel lacks what it promises.
func (m Mode) check(k kernel) error {
	const instead = "--sandbox auto confines by what there is; "
	switch {
	case m != On:
	case k.abi == 0:
		return hint.Errorf(instead+"Landlock needs Linux 5.13, landlock in the boot parameter lsm=, and in a "+
			"container a seccomp profile that allows the system calls landlock_*", "--sandbox on: %s", k.noFiles)
	case k.noCalls != "":
		return hint.Errorf(instead+"seccomp needs a kernel with CONFIG_SECCOMP_FILTER", "--sandbox on: %s", k.noCalls)
	}
	return nil
}
