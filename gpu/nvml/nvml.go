package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/xtts-host/xtts-host/gpu"
)

// inventory is a gpu.Inventory with an initialized library.
type inventory struct {
	driver  gpu.Driver
	devices []gpu.Device
	handles map[string]nvml.Device // by UUID
	// reserved is set if the driver distinguishes memory that it reserves from memory that is used: since version 510.
	reserved bool

	mu       sync.RWMutex // held for reading by every call of the library, for writing by Close
	lib      nvml.Interface
	closed   bool
	watchers map[*watcher]bool
}

// Open loads the library and lists the GPUs. The inventory is empty, and its Driver says why, if there is no library,
// no driver for it, and no GPU that the kernel knows. Everything else that fails is an error.
func Open() (gpu.Inventory, error) { return open(nvml.New(), gpu.Detect) }

func open(lib nvml.Interface, detect func() ([]gpu.Device, error)) (gpu.Inventory, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return absent(ret, detect)
	}
	i := &inventory{
		lib: lib, handles: map[string]nvml.Device{}, watchers: map[*watcher]bool{},
		reserved: lib.Extensions().LookupSymbol("nvmlDeviceGetMemoryInfo_v2") == nil,
	}
	if err := i.list(); err != nil {
		i.Close()
		return nil, fmt.Errorf("list GPUs by NVML: %w", err)
	}
	return i, nil
}

// absent distinguishes a machine without GPUs from a machine whose GPUs are unusable. It calls nothing of the library,
// which is not initialized.
func absent(ret nvml.Return, detect func() ([]gpu.Device, error)) (gpu.Inventory, error) {
	seen, err := detect()
	if err != nil {
		return nil, err
	}
	why, advice := fmt.Sprintf("NVML does not start (error %d)", int(ret)), "nvidia-smi may say more"
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		why = "NVIDIA's driver library (libnvidia-ml.so.1) is not installed"
		advice = "install it with the driver; a container gets it by NVIDIA_DRIVER_CAPABILITIES=compute,utility"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		why = "NVIDIA's driver is not loaded"
		advice = "load the kernel module (modprobe nvidia), or install the driver"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		why = "NVIDIA's driver library and kernel module are of different versions"
		advice = "restart the machine: the driver was updated"
	case nvml.ERROR_NO_PERMISSION:
		why = "no permission to use NVIDIA's driver"
		advice = "let the user read and write /dev/nvidia*"
	}
	gone := ret == nvml.ERROR_LIBRARY_NOT_FOUND || ret == nvml.ERROR_DRIVER_NOT_LOADED
	switch {
	case gone && len(seen) == 0:
		return &inventory{driver: gpu.Driver{Absent: why}}, nil
	case len(seen) > 0:
		why = fmt.Sprintf("this machine has %s, but %s", seen[0], why)
	}
	return nil, &gpu.AdvisedError{Reason: why, Advice: advice}
}

// list fills the inventory.
func (i *inventory) list() error {
	version, ret := i.lib.SystemGetDriverVersion()
	if err := failed("driver version", ret); err != nil {
		return err
	}
	cuda, ret := i.lib.SystemGetCudaDriverVersion()
	if err := failed("CUDA version", ret); err != nil {
		return err
	}
	i.driver = gpu.Driver{Version: version, CUDA: fmt.Sprintf("%d.%d", cuda/1000, cuda%1000/10)}
	count, ret := i.lib.DeviceGetCount()
	if err := failed("number of GPUs", ret); err != nil {
		return err
	}
	for n := range count {
		d, handle, err := i.identify(n)
		if err != nil {
			return fmt.Errorf("GPU %d: %w", n, err)
		}
		i.devices = append(i.devices, d)
		i.handles[d.UUID] = handle
	}
	// NVML uses the same order, but does not promise it. A virtual machine may have equal addresses; then NVML's order
	// is kept.
	slices.SortStableFunc(i.devices, func(a, b gpu.Device) int { return cmp.Compare(a.PCI, b.PCI) })
	for n := range i.devices {
		i.devices[n].Index = n
	}
	return nil
}

func (i *inventory) identify(n int) (gpu.Device, nvml.Device, error) {
	handle, ret := i.lib.DeviceGetHandleByIndex(n)
	if err := failed("handle", ret); err != nil {
		return gpu.Device{}, nil, err
	}
	uuid, ret := handle.GetUUID()
	if err := failed("UUID", ret); err != nil {
		return gpu.Device{}, nil, err
	}
	name, ret := handle.GetName()
	if err := failed("name", ret); err != nil {
		return gpu.Device{}, nil, err
	}
	pci, ret := handle.GetPciInfo()
	if err := failed("PCI address", ret); err != nil {
		return gpu.Device{}, nil, err
	}
	memory, ret := handle.GetMemoryInfo()
	if err := failed("memory", ret); err != nil {
		return gpu.Device{}, nil, err
	}
	major, minor, ret := handle.GetCudaComputeCapability()
	if err := failed("compute capability", ret); err != nil {
		return gpu.Device{}, nil, err
	}
	// A GPU is always function 0 of its card.
	address := fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	return gpu.Device{UUID: uuid, Name: name, PCI: address, Memory: int64(memory.Total), Capability: 10*major + minor},
		handle, nil
}

func (i *inventory) Driver() gpu.Driver { return i.driver }

func (i *inventory) Devices() []gpu.Device { return slices.Clone(i.devices) }

func (i *inventory) Memory(uuid string) (use gpu.MemoryUse, err error) {
	err = i.ask(uuid, "memory", func(d nvml.Device) nvml.Return {
		var ret nvml.Return
		use, ret = i.memory(d)
		return ret
	})
	return use, err
}

// memory returns what processes use, as nvidia-smi does. The older call counts the memory that the driver reserves for
// itself as used: hundreds of MB on an unused card.
func (i *inventory) memory(d nvml.Device) (gpu.MemoryUse, nvml.Return) {
	if i.reserved {
		m, ret := d.GetMemoryInfo_v2()
		if ret != nvml.ERROR_NOT_SUPPORTED {
			return gpu.MemoryUse{Used: int64(m.Used), Free: int64(m.Free), Total: int64(m.Total)}, ret
		}
	}
	m, ret := d.GetMemoryInfo()
	return gpu.MemoryUse{Used: int64(m.Used), Free: int64(m.Free), Total: int64(m.Total)}, ret
}

func (i *inventory) Processes(uuid string) (list []gpu.Process, err error) {
	err = i.ask(uuid, "processes", func(d nvml.Device) nvml.Return {
		infos, ret := d.GetComputeRunningProcesses()
		list = make([]gpu.Process, len(infos))
		for n, p := range infos {
			list[n] = gpu.Process{PID: int(p.Pid), Used: int64(p.UsedGpuMemory)} // NVML_VALUE_NOT_AVAILABLE is -1
		}
		return ret
	})
	return list, err
}

func (i *inventory) Utilization(uuid string) (u gpu.Utilization, err error) {
	err = i.ask(uuid, "utilization", func(d nvml.Device) nvml.Return {
		rates, ret := d.GetUtilizationRates()
		u = gpu.Utilization{GPU: float64(rates.Gpu) / 100, Memory: float64(rates.Memory) / 100}
		return ret
	})
	return u, err
}

// ask calls the library about one GPU.
func (i *inventory) ask(uuid, what string, call func(nvml.Device) nvml.Return) error {
	i.mu.RLock()
	defer i.mu.RUnlock()
	handle, err := i.handle(uuid)
	if err != nil {
		return err
	}
	return failed(what+" of "+uuid, call(handle))
}

// handle finds a GPU. The caller holds mu.
func (i *inventory) handle(uuid string) (nvml.Device, error) {
	if i.closed {
		return nil, gpu.ErrClosed
	}
	handle, ok := i.handles[uuid]
	if !ok {
		return nil, fmt.Errorf("no GPU %s", uuid)
	}
	return handle, nil
}

func (i *inventory) Close() error {
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		return nil
	}
	i.closed = true // no call of the library begins after this
	watchers := slices.Collect(maps.Keys(i.watchers))
	i.mu.Unlock()
	for _, w := range watchers { // they call the library until they are closed
		w.Close()
	}
	if i.lib == nil {
		return nil
	}
	return failed("shutdown", i.lib.Shutdown())
}

// failed returns an error for a result of the library.
func failed(what string, ret nvml.Return) error {
	if ret == nvml.SUCCESS {
		return nil
	}
	return fmt.Errorf("%s: %w", what, errors.New(ret.Error()))
}
