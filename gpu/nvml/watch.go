package nvml

import (
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/xtts-host/xtts-host/gpu"
)

// waitMS bounds a single wait for the driver, and so the duration of Close.
const waitMS = 200

// watcher is a gpu.Watcher. Only its goroutine uses the set.
type watcher struct {
	inventory *inventory
	set       nvml.EventSet
	faults    chan gpu.Fault
	stop      chan struct{}
	once      sync.Once
	done      chan struct{} // closed when the goroutine has ended and the set is freed
}

// Watch reports the faults of all GPUs that can report any. It fails if none can, as under some hypervisors.
func (i *inventory) Watch() (gpu.Watcher, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, gpu.ErrClosed
	}
	if i.lib == nil {
		return nil, fmt.Errorf("watch GPUs: %s", i.driver.Absent)
	}
	set, ret := i.lib.EventSetCreate()
	if err := failed("watch GPUs", ret); err != nil {
		return nil, err
	}
	watched, last := 0, nvml.ERROR_NOT_SUPPORTED
	for _, d := range i.devices {
		if last = i.handles[d.UUID].RegisterEvents(nvml.EventTypeXidCriticalError, set); last == nvml.SUCCESS {
			watched++
		}
	}
	if watched == 0 {
		set.Free()
		return nil, failed("watch GPUs", last)
	}
	// Faults come in bursts: the buffer is for a late reader. Faults that do not fit are dropped; the first ones are
	// the most useful.
	w := &watcher{
		inventory: i, set: set, faults: make(chan gpu.Fault, 64), stop: make(chan struct{}), done: make(chan struct{}),
	}
	i.watchers[w] = true
	go w.run()
	return w, nil
}

func (w *watcher) Faults() <-chan gpu.Fault { return w.faults }

func (w *watcher) run() {
	defer close(w.done)
	defer close(w.faults)
	defer w.set.Free()
	for {
		select {
		case <-w.stop:
			return
		default:
		}
		event, ret := w.set.Wait(waitMS)
		switch ret {
		case nvml.SUCCESS:
		case nvml.ERROR_TIMEOUT:
			continue
		default:
			// After a GPU is lost, each wait fails at once.
			select {
			case <-w.stop:
				return
			case <-time.After(waitMS * time.Millisecond):
			}
			continue
		}
		if event.EventType != nvml.EventTypeXidCriticalError {
			continue
		}
		uuid, ret := event.Device.GetUUID()
		if ret != nvml.SUCCESS {
			uuid = "" // most likely lost
		}
		select {
		case w.faults <- gpu.Fault{UUID: uuid, XID: event.EventData, At: time.Now()}:
		default:
		}
	}
}

// Close ends the watching and waits for its goroutine.
func (w *watcher) Close() error {
	w.once.Do(func() { close(w.stop) })
	<-w.done
	w.inventory.mu.Lock()
	delete(w.inventory.watchers, w)
	w.inventory.mu.Unlock()
	return nil
}
