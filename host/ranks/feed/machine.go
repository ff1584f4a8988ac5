package feed

import (
	"bytes"
	"fmt"
	"os"

	"github.com/xtts-host/xtts-host/host/settings/world"
)

// Meeting is the ranks of a run, of which all call All in the same order: a *meet.Group.
type Meeting interface {
	World() world.World
	All(data []byte) ([][]byte, error)
	// Lost is closed when a rank has ended, and Err says which.
	Lost() <-chan struct{}
	Err() error
}

// Find returns the ranks that can share memory with this one. All ranks of a run call it. Ranks with another name share
// nothing.
func Find(m Meeting, name string) (world.Machine, error) {
	all, err := m.All(identity(name))
	if err != nil {
		return world.Machine{}, err
	}
	return machineOf(m.World().Rank, all), nil
}

// machineOf returns the ranks with the identity of this one. A rank without an identity is alone.
func machineOf(rank int, identities [][]byte) world.Machine {
	if len(identities[rank]) == 0 {
		return world.Machine{Size: 1, First: rank}
	}
	m := world.Machine{First: -1}
	for other, id := range identities {
		if !bytes.Equal(id, identities[rank]) {
			continue
		}
		if m.First < 0 {
			m.First = other
		}
		if other < rank {
			m.Index++
		}
		m.Size++
	}
	return m
}

// identity says what processes that can share memory have in common: the start of the machine, the container, by the
// files that it sees, and the user. It is empty if that is not known.
func identity(name string) []byte {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	container, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, "%s %s %d %s", bytes.TrimSpace(boot), container, os.Geteuid(), name)
}
