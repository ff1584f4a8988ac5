package files

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
)

// owner identifies a process among those of all machines that share a disk.
type owner struct {
	Host    string `json:"host"`
	Machine string `json:"machine"` // /etc/machine-id
	Boot    string `json:"boot"`    // of the machine's kernel
	PIDs    string `json:"pids"`    // the namespace of process ids: a container has one of its own
	PID     int    `json:"pid"`
	Started string `json:"started"` // ticks of the clock since the boot
	// Hold is a random text for each hold of a process. Older versions have none.
	Hold string `json:"hold,omitempty"`
}

func (o owner) String() string {
	if o == (owner{}) {
		return "a process that does not describe itself"
	}
	return fmt.Sprintf("process %d on %q", o.PID, o.Host)
}

func (o owner) format() []byte {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // texts and a number
	}
	return append(data, '\n')
}

// parseOwner returns nothing for a file that is not complete: its writer may be about to complete it.
func parseOwner(data []byte) (o owner) {
	if json.Unmarshal(data, &o) != nil {
		return owner{}
	}
	return o
}

// lives reports whether the process lives, if that can be known from here.
func (o owner) lives(here owner) (alive, known bool) {
	switch {
	case o == owner{} || here.Boot == "":
		return false, false
	case o.Boot == here.Boot && o.PIDs == here.PIDs:
		return startOf(o.PID) == o.Started, true
	case o.Host == here.Host && o.Machine == here.Machine && o.Machine != "" && o.Boot != here.Boot:
		return false, true // the machine has started again since
	}
	return false, false
}

// thisProcess describes this process.
var thisProcess = sync.OnceValue(func() owner {
	host, _ := os.Hostname()
	pids, _ := os.Readlink("/proc/self/ns/pid")
	return owner{
		Host: host, Machine: content("/etc/machine-id"), Boot: content("/proc/sys/kernel/random/boot_id"), PIDs: pids,
		PID: os.Getpid(), Started: startOf(os.Getpid()),
	}
})

func content(file string) string {
	data, _ := os.ReadFile(file) // not there on every system
	return strings.TrimSpace(string(data))
}

// startOf returns when a process began, "" if there is none of that id.
func startOf(pid int) string {
	stat := content(fmt.Sprintf("/proc/%d/stat", pid))
	// The name of the program is in parentheses, and may contain anything. The start is field 22, the 20th after it.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}
