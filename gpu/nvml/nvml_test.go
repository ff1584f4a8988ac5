package nvml

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"

	"github.com/xtts-host/xtts-host/gpu"
)

func none() ([]gpu.Device, error) { return nil, nil }

// server is NVML's own mock of a machine with 8 GPUs, with additions. NVML's order is opposite to that of the PCI
// addresses, to check that the package does not rely on it.
func server() *dgxa100.Server {
	s := dgxa100.New()
	for n, d := range s.Devices {
		d := d.(*dgxa100.Device)
		d.UUID = fmt.Sprintf("GPU-%d", n)
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			return nvml.PciInfo{Domain: 1, Bus: uint32(0x20 - n), Device: 3}, nvml.SUCCESS
		}
		d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{Gpu: 50, Memory: 25}, nvml.SUCCESS
		}
		d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
			return []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 1 << 20}, {Pid: 8, UsedGpuMemory: ^uint64(0)}},
				nvml.SUCCESS
		}
		d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
			m := d.MemoryInfo
			return nvml.Memory_v2{Total: m.Total, Reserved: m.Total - m.Used - m.Free, Used: m.Used, Free: m.Free},
				nvml.SUCCESS
		}
		d.GetTopologyCommonAncestorFunc = func(nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
			return nvml.TOPOLOGY_NODE, nvml.SUCCESS
		}
		d.GetP2PStatusFunc = func(_ nvml.Device, c nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
			if c == nvml.P2P_CAPS_INDEX_NVLINK {
				return nvml.P2P_STATUS_NOT_SUPPORTED, nvml.SUCCESS
			}
			return nvml.P2P_STATUS_OK, nvml.SUCCESS
		}
	}
	return s
}

func device(s *dgxa100.Server, n int) *dgxa100.Device { return s.Devices[n].(*dgxa100.Device) }

func opened(t *testing.T, s *dgxa100.Server) gpu.Inventory {
	t.Helper()
	i, err := open(s, none)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// TestMemory: the memory that the driver reserves is not used. A driver that cannot distinguish it from used memory
// answers as it can.
func TestMemory(t *testing.T) {
	const gib = 1 << 30
	without := &mock.ExtendedInterface{LookupSymbolFunc: func(string) error { return errors.New("no symbol") }}
	for _, tt := range []struct {
		name string
		old  bool
		v2   nvml.Return
		used int64
	}{
		{"reserved memory", false, nvml.SUCCESS, 1 * gib},
		{"driver without the call", true, nvml.ERROR_FUNCTION_NOT_FOUND, 3 * gib},
		{"card without the call", false, nvml.ERROR_NOT_SUPPORTED, 3 * gib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := server()
			if tt.old {
				s.ExtensionsFunc = func() nvml.ExtendedInterface { return without }
			}
			device(s, 0).MemoryInfo = nvml.Memory{Total: 40 * gib, Used: 3 * gib, Free: 37 * gib}
			device(s, 0).GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
				return nvml.Memory_v2{Total: 40 * gib, Reserved: 2 * gib, Used: 1 * gib, Free: 37 * gib}, tt.v2
			}
			m, err := opened(t, s).Memory("GPU-0")
			if err != nil || m != (gpu.MemoryUse{Used: tt.used, Free: 37 * gib, Total: 40 * gib}) {
				t.Errorf("memory %+v, %v", m, err)
			}
		})
	}
}

func TestInventory(t *testing.T) {
	s := server()
	device(s, 0).MemoryInfo = nvml.Memory{Total: 40 << 30, Used: 30 << 30, Free: 9 << 30}
	i := opened(t, s)
	if got, want := i.Driver(), (gpu.Driver{Version: "550.54.15", CUDA: "12.4"}); got != want {
		t.Errorf("driver %+v", got)
	}
	devices := i.Devices()
	want := gpu.Device{
		Index: 7, UUID: "GPU-0", PCI: "0001:20:03.0", Name: "Mock NVIDIA A100-SXM4-40GB", Memory: 40 << 30,
		Capability: 80,
	}
	if len(devices) != 8 || devices[7] != want || devices[0].UUID != "GPU-7" {
		t.Errorf("devices %v", devices)
	}
	if m, err := i.Memory("GPU-0"); err != nil || m != (gpu.MemoryUse{Used: 30 << 30, Free: 9 << 30, Total: 40 << 30}) {
		t.Errorf("memory %+v, %v", m, err)
	}
	if u, err := i.Utilization("GPU-0"); err != nil || u != (gpu.Utilization{GPU: 0.5, Memory: 0.25}) {
		t.Errorf("utilization %+v, %v", u, err)
	}
	if p, err := i.Processes("GPU-0"); err != nil || len(p) != 2 || p[0] != (gpu.Process{PID: 7, Used: 1 << 20}) ||
		p[1].Used != -1 {
		t.Errorf("processes %+v, %v", p, err)
	}
	if _, err := i.Memory("GPU-9"); err == nil || err.Error() != "no GPU GPU-9" {
		t.Errorf("unknown GPU: %v", err)
	}
}

// TestEqualAddresses keeps NVML's order if a virtual machine gives every card the same address.
func TestEqualAddresses(t *testing.T) {
	s := server()
	for n := range s.Devices {
		device(s, n).GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.SUCCESS }
	}
	for n, d := range opened(t, s).Devices() {
		if d.UUID != fmt.Sprintf("GPU-%d", n) || d.Index != n {
			t.Errorf("device %d is %+v", n, d)
		}
	}
}

// TestAbsent opens a library that does not start. No other function of the mock may be called.
func TestAbsent(t *testing.T) {
	one := []gpu.Device{{Name: "NVIDIA L4", UUID: "GPU-1"}}
	for _, tt := range []struct {
		ret    nvml.Return
		seen   []gpu.Device
		absent string // Driver.Absent, if there is an inventory
		want   string // otherwise the error
		hint   string
	}{
		{nvml.ERROR_LIBRARY_NOT_FOUND, nil, "NVIDIA's driver library (libnvidia-ml.so.1) is not installed", "", ""},
		{nvml.ERROR_DRIVER_NOT_LOADED, nil, "NVIDIA's driver is not loaded", "", ""},
		{
			nvml.ERROR_LIBRARY_NOT_FOUND, one, "",
			"this machine has GPU 0 (NVIDIA L4, GPU-1), but NVIDIA's driver library (libnvidia-ml.so.1) is not " +
				"installed",
			"NVIDIA_DRIVER_CAPABILITIES=compute,utility",
		},
		{
			nvml.ERROR_LIB_RM_VERSION_MISMATCH, nil, "",
			"NVIDIA's driver library and kernel module are of different versions", "restart the machine",
		},
		{
			nvml.ERROR_NO_PERMISSION, one, "",
			"this machine has GPU 0 (NVIDIA L4, GPU-1), but no permission to use NVIDIA's driver", "/dev/nvidia*",
		},
		{nvml.ERROR_UNKNOWN, nil, "", "NVML does not start (error 999)", "nvidia-smi"},
	} {
		lib := &mock.Interface{InitFunc: func() nvml.Return { return tt.ret }}
		i, err := open(lib, func() ([]gpu.Device, error) { return tt.seen, nil })
		if tt.absent != "" {
			if err != nil || i.Driver().Absent != tt.absent || len(i.Devices()) != 0 {
				t.Errorf("%v: %+v, %v", tt, i, err)
				continue
			}
			if _, err := i.Memory("GPU-1"); err == nil {
				t.Error("memory of no GPU")
			}
			if _, err := i.Watch(); err == nil || err.Error() != "watch GPUs: "+tt.absent {
				t.Errorf("watch: %v", err)
			}
			if err := errors.Join(i.Close(), i.Close()); err != nil {
				t.Error(err)
			}
			continue
		}
		advised, ok := errors.AsType[*gpu.AdvisedError](err)
		if !ok || advised.Reason != tt.want || !strings.Contains(advised.Advice, tt.hint) {
			t.Errorf("%v: error %v", tt, err)
		}
	}
	lib := &mock.Interface{InitFunc: func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }}
	if _, err := open(lib, func() ([]gpu.Device, error) { return nil, errors.New("unreadable") }); err == nil {
		t.Error("what the kernel says cannot be read, and that is no error")
	}
}

// TestOpen opens the library of this machine, if it has one.
func TestOpen(t *testing.T) {
	for range 2 { // it can be opened again after Close
		i, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		if d := i.Driver(); (d.Absent == "") != (d.Version != "") || d.Absent != "" && len(i.Devices()) > 0 {
			t.Errorf("driver %+v and %d GPUs", d, len(i.Devices()))
		}
		m, err := gpu.Look(i)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%+v", m)
		if w, err := i.Watch(); err == nil {
			w.Close()
		} else if len(m.Cards) > 0 {
			t.Logf("no faults are reported here: %v", err)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenFails(t *testing.T) {
	ends := 0
	s := server()
	s.ShutdownFunc = func() nvml.Return { ends++; return nvml.SUCCESS }
	device(s, 3).GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	_, err := open(s, none)
	if err == nil || err.Error() != "list GPUs by NVML: GPU 3: UUID: ERROR_GPU_IS_LOST" || ends != 1 {
		t.Errorf("error %v, %d shutdowns", err, ends)
	}
}

func TestLink(t *testing.T) {
	s := server()
	i := opened(t, s)
	link := func() gpu.Link {
		t.Helper()
		l, err := i.Link("GPU-0", "GPU-1")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if got := link(); got != (gpu.Link{Distance: gpu.SameNode, Peer: true}) {
		t.Errorf("by PCI: %v", got)
	}
	// Links 0 to 5 lead to other places, except for 0 and 1; 5 is down.
	x := device(s, 0)
	all := func(nvml.Device, nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
		return nvml.P2P_STATUS_OK, nvml.SUCCESS
	}
	x.GetP2PStatusFunc = all
	x.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		switch {
		case link < 5:
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		case link == 5:
			return nvml.FEATURE_DISABLED, nvml.SUCCESS
		}
		return 0, nvml.ERROR_INVALID_ARGUMENT
	}
	x.GetNvLinkRemotePciInfoFunc = func(link int) (nvml.PciInfo, nvml.Return) {
		if link < 2 {
			return device(s, 1).GetPciInfo()
		}
		return nvml.PciInfo{Bus: 99}, nvml.SUCCESS
	}
	if got := link(); got.NVLinks != 2 || got.String() != "by 2 NVLinks, with peer access" {
		t.Errorf("direct links: %v", got)
	}
	x.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{Bus: 99}, nvml.SUCCESS }
	if got := link(); got.NVLinks != 5 {
		t.Errorf("through a switch: %v", got)
	}
	x.GetP2PStatusFunc = func(nvml.Device, nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	if got := link(); got.Peer || got.NVLinks != 0 {
		t.Errorf("a driver that does not know: %v", got)
	}
	if _, err := i.Link("GPU-0", "GPU-0"); err == nil {
		t.Error("a link of a GPU with itself")
	}
}

// events is an event set whose Wait returns what the test sends.
func events(s *dgxa100.Server, freed *atomic.Int32) chan nvml.EventData {
	c := make(chan nvml.EventData)
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{
			WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
				select {
				case e := <-c:
					return e, nvml.SUCCESS
				case <-time.After(time.Millisecond):
					return nvml.EventData{}, nvml.ERROR_TIMEOUT
				}
			},
			FreeFunc: func() nvml.Return { freed.Add(1); return nvml.SUCCESS },
		}, nvml.SUCCESS
	}
	for n := range s.Devices {
		device(s, n).RegisterEventsFunc = func(types uint64, _ nvml.EventSet) nvml.Return {
			if types != nvml.EventTypeXidCriticalError || n == 2 {
				return nvml.ERROR_NOT_SUPPORTED // one card that cannot report does not affect the others
			}
			return nvml.SUCCESS
		}
	}
	return c
}

func TestWatch(t *testing.T) {
	s := server()
	var freed atomic.Int32
	c := events(s, &freed)
	i := opened(t, s)
	w, err := i.Watch()
	if err != nil {
		t.Fatal(err)
	}
	c <- nvml.EventData{Device: s.Devices[1], EventType: nvml.EventTypeXidCriticalError, EventData: 79}
	f := <-w.Faults()
	if f.UUID != "GPU-1" || f.XID != 79 || !f.Hardware() || f.String() != "XID 79: the GPU has fallen off the bus" {
		t.Errorf("fault %+v", f)
	}
	w.Close()
	w.Close()
	if _, open := <-w.Faults(); open || freed.Load() != 1 {
		t.Errorf("after Close: channel open %v, freed %d times", open, freed.Load())
	}

	// The inventory closes what is still open before it closes the library.
	if w, err = i.Watch(); err != nil {
		t.Fatal(err)
	}
	s.ShutdownFunc = func() nvml.Return {
		if freed.Load() != 2 {
			t.Error("the library was closed before the watcher")
		}
		return nvml.SUCCESS
	}
	i.Close()
	if _, open := <-w.Faults(); open {
		t.Error("the watcher continues")
	}
	if _, err := i.Watch(); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("watch after Close: %v", err)
	}
	if _, err := i.Memory("GPU-0"); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("memory after Close: %v", err)
	}
}

func TestWatchNothing(t *testing.T) {
	s := server()
	var freed atomic.Int32
	events(s, &freed)
	for n := range s.Devices {
		device(s, n).RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
	}
	_, err := opened(t, s).Watch()
	if err == nil || err.Error() != "watch GPUs: ERROR_NOT_SUPPORTED" || freed.Load() != 1 {
		t.Errorf("error %v, freed %d", err, freed.Load())
	}
}
