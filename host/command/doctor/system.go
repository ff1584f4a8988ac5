package doctor

import (
	"io/fs"
	"path"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/settings/limits"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/shared/hint"
)

const unlimited = unix.RLIM_INFINITY

// Sufficient limits. The ring is not in /dev/shm, but the data loaders of plugins may use it. A plugin needs about 10
// descriptors of the host.
const (
	enoughShm         = 1 << 30
	enoughDescriptors = 1024
	enoughMemory      = 4 << 30 // the smallest embedded model takes 0.8 GiB, each plugin process 0.1
)

// system reports the limits of the operating system and of the container.
func (e *examination) system() {
	r := e.report
	r.section("machine")
	// Go's default for GOMAXPROCS is the smaller of the cores and the container's limit.
	if all, ours := runtime.NumCPU(), runtime.GOMAXPROCS(0); ours < all {
		r.add(Note, "give the container more CPUs, or set GOMAXPROCS, if decoding is the bottleneck",
			"%d CPU cores, of which %d may be used", all, ours)
	} else {
		r.add(OK, "", "%d CPU cores", ours)
	}
	var shm unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &shm); err != nil {
		r.add(Note, "the ring does not use /dev/shm; a plugin may", "/dev/shm: %v", err)
	} else if total := shm.Blocks * uint64(shm.Bsize); total < enoughShm {
		r.add(Note, "the ring does not use it; for plugins that do, docker run --shm-size 1g", "/dev/shm holds %s",
			size(total))
	} else {
		r.add(OK, "", "/dev/shm holds %s", size(total))
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		r.add(Note, "", "locked memory: %v", err)
	} else if limit.Cur != unlimited && e.gpus {
		r.add(Note, "if the ring cannot be pinned: ulimit -l unlimited, or docker run --ulimit memlock=-1",
			"locked memory: %s", size(limit.Cur))
	} else {
		r.add(OK, "", "locked memory: %s", size(limit.Cur))
	}
	e.limits(limits.Read())
	e.sandbox()
}

// sandbox reports what confines plugins.
func (e *examination) sandbox() {
	r := e.report
	if err := e.Sandbox.Check(); err != nil {
		r.add(Bad, hint.Of(err), "%v", err)
		return
	}
	for i, line := range sandbox.Describe(e.Sandbox).Lines() {
		if i == 0 && e.Sandbox != sandbox.Off {
			r.add(OK, "", "sandbox of plugins: %s", line)
		} else {
			r.add(Note, "SECURITY.md, Plugins, says what a plugin can do then",
				"sandbox of plugins: %s", line)
		}
	}
}

// limits reports what processes may use.
func (e *examination) limits(l limits.Limits) {
	r := e.report
	switch {
	case l.Container > 0 && l.Container < enoughMemory:
		r.add(Note, "give the container more, or use a smaller --batch-size; the ring takes at most half of it",
			"memory: %s, of which the container may use %s", size(uint64(l.Memory)), size(uint64(l.Container)))
	case l.Container > 0:
		r.add(OK, "", "memory: %s, of which the container may use %s", size(uint64(l.Memory)),
			size(uint64(l.Container)))
	case l.Memory > 0:
		r.add(OK, "", "memory: %s", size(uint64(l.Memory)))
	}
	if err := l.Check(); err != nil {
		r.add(Bad, hint.Of(err), "%v", err)
	} else if l.AddressSpace > 0 {
		r.add(Note, "ulimit -v unlimited: Go and ONNX Runtime reserve more than they use",
			"the address space of a process is limited to %s", size(uint64(l.AddressSpace)))
	}
	if l.Seconds > 0 {
		r.add(Note, "ulimit -t unlimited, or save often with --checkpoint-every",
			"the system ends a process after %d s of CPU time (ulimit -t)", l.Seconds)
	}
	if l.Files > 0 && l.Files < enoughDescriptors {
		r.add(Note, "ulimit -n 4096", "%d open files", l.Files)
	} else if l.Files > 0 {
		r.add(OK, "", "%d open files", l.Files)
	}
}

// nvidiaCards counts NVIDIA's display controllers on the PCI bus, with or without a driver. It returns 0 if the bus
// cannot be read.
func nvidiaCards(root fs.FS) int {
	const bus = "sys/bus/pci/devices"
	cards, _ := fs.ReadDir(root, bus) // for example in a container without /sys
	n := 0
	for _, c := range cards {
		vendor, _ := fs.ReadFile(root, path.Join(bus, c.Name(), "vendor"))
		class, _ := fs.ReadFile(root, path.Join(bus, c.Name(), "class"))
		if strings.TrimSpace(string(vendor)) == "0x10de" && strings.HasPrefix(string(class), "0x03") {
			n++
		}
	}
	return n
}
