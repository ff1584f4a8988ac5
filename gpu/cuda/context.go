package cuda

// #include <cuda.h>
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"gorgonia.org/cu"
)

// Open returns the GPU with this UUID, in the format of package gpu and nvidia-smi. The Index of its Device is CUDA's
// index in this process, which ONNX Runtime needs. It differs from that of gpu.Detect if CUDA_VISIBLE_DEVICES is set.
//
// Open may be called from any goroutine and does not change the calling thread. The contexts of two calls for the same
// GPU share its primary context.
func Open(uuid string) (gpu.Context, error) {
	c, err := newContext(uuid)
	if err != nil {
		return nil, fmt.Errorf("open GPU %s: %w", uuid, err)
	}
	return c, nil
}

func newContext(uuid string) (*context, error) {
	if err := Start(); err != nil {
		return nil, err
	}
	ordinal, id, err := find(uuid)
	if err != nil {
		return nil, err
	}
	c := &context{ordinal: ordinal}
	if c.device, err = describe(ordinal, id); err != nil {
		return nil, err
	}
	if err := wrap("cuDevicePrimaryCtxSetFlags", ordinal.SetPrimaryCtxFlags(cu.SchedBlockingSync)); err != nil {
		return nil, err
	}
	if c.primary, err = ordinal.RetainPrimaryCtx(); err != nil {
		return nil, wrap("cuDevicePrimaryCtxRetain", err)
	}
	err = c.onThisThread(func() (err error) {
		c.clearing, err = c.newStream()
		return err
	})
	if err != nil {
		ordinal.ReleasePrimaryCtx() // may fail too; err has the reason
		return nil, err
	}
	return c, nil
}

// find returns the index of the GPU with this UUID, and the UUID in the format of package gpu.
func find(uuid string) (cu.Device, string, error) {
	count, err := cu.NumDevices()
	if err != nil {
		return 0, "", wrap("cuDeviceGetCount", err)
	}
	var seen []string
	for i := range count {
		device, err := cu.GetDevice(i)
		if err != nil {
			return 0, "", wrap("cuDeviceGet", err)
		}
		bytes, err := device.UUID()
		if err != nil {
			return 0, "", wrap("cuDeviceGetUuid", err)
		}
		id := "GPU-" + bytes.String()
		if strings.EqualFold(id, uuid) {
			return device, id, nil
		}
		seen = append(seen, id)
	}
	return 0, "", &notSeen{seen}
}

// notSeen is a UUID for which CUDA shows no GPU.
type notSeen struct{ seen []string }

func (e *notSeen) Error() string {
	if len(e.seen) == 0 {
		return "CUDA shows this process no GPU"
	}
	return "CUDA shows this process only " + strings.Join(e.seen, ", ")
}

func (e *notSeen) Hint() string {
	if v := os.Getenv("CUDA_VISIBLE_DEVICES"); v != "" {
		return "CUDA_VISIBLE_DEVICES=" + v + " hides the others"
	}
	return "nvidia-smi -L lists the GPUs of this machine"
}

func describe(ordinal cu.Device, uuid string) (gpu.Device, error) {
	name, err := ordinal.Name()
	if err != nil {
		return gpu.Device{}, wrap("cuDeviceGetName", err)
	}
	var pci [len("0000:00:00.0") + 1]C.char
	if err := check(
		"cuDeviceGetPCIBusId", C.cuDeviceGetPCIBusId(&pci[0], C.int(len(pci)), C.CUdevice(ordinal)),
	); err != nil {
		return gpu.Device{}, err
	}
	var capability [2]int
	for i, part := range []cu.DeviceAttribute{cu.ComputeCapabilityMajor, cu.ComputeCapabilityMinor} {
		if capability[i], err = ordinal.Attribute(part); err != nil {
			return gpu.Device{}, wrap("cuDeviceGetAttribute", err)
		}
	}
	multiprocessors, err := multiprocessorsOf(ordinal)
	if err != nil {
		return gpu.Device{}, err
	}
	return gpu.Device{
		Index: int(ordinal), UUID: uuid, PCI: strings.ToLower(C.GoString(&pci[0])), Name: name,
		Capability: 10*capability[0] + capability[1], Multiprocessors: multiprocessors,
	}, nil
}

// multiprocessorsOf asks the driver, which counts those of this process's part of a GPU that is divided.
func multiprocessorsOf(ordinal cu.Device) (m gpu.Multiprocessors, err error) {
	cooperative := 0
	for attribute, value := range map[cu.DeviceAttribute]*int{
		cu.MultiprocessorCount: &m.Count, cu.MaxSharedMemoryPerMultiprocessor: &m.SharedMemory,
		C.CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: &cooperative,
	} {
		if *value, err = ordinal.Attribute(attribute); err != nil {
			return m, wrap("cuDeviceGetAttribute", err)
		}
	}
	m.Cooperative = cooperative != 0 && address("cuLaunchCooperativeKernel") != 0
	return m, nil
}

// context is a gpu.Context with a GPU's primary context. Like all types of this package, its one owner closes it after
// all other calls, so it needs no lock.
type context struct {
	ordinal  cu.Device
	device   gpu.Device
	primary  cu.CUContext
	clearing *stream // zeroes new memory
	closed   bool
}

func (c *context) open() error {
	if c.closed {
		return fmt.Errorf("GPU %s: %w", c.device.UUID, gpu.ErrClosed)
	}
	return nil
}

func (c *context) Device() gpu.Device { return c.device }

func (c *context) Bind() error {
	err := c.open()
	if err == nil {
		err = wrap("cuCtxSetCurrent", cu.SetCurrentContext(c.primary))
	}
	if err == nil {
		// Without this, while another thread captures a CUDA graph, any call that may wait fails with
		// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), and so does the capture.
		mode := C.CUstreamCaptureMode(C.CU_STREAM_CAPTURE_MODE_RELAXED)
		err = check("cuThreadExchangeStreamCaptureMode", C.cuThreadExchangeStreamCaptureMode(&mode))
	}
	return during("bind a thread to the GPU", err)
}

// onThisThread runs f with the context current, and then restores the previous context.
func (c *context) onThisThread(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := wrap("cuCtxPushCurrent", cu.PushCurrentCtx(c.primary)); err != nil {
		return err
	}
	err := f()
	if _, popped := cu.PopCurrentCtx(); err == nil {
		err = wrap("cuCtxPopCurrent", popped)
	}
	return err
}

func (c *context) MemInfo() (free, total int, err error) {
	const what = "ask for the GPU's memory"
	if err := c.open(); err != nil {
		return 0, 0, during(what, err)
	}
	f, t, err := cu.MemInfo()
	return int(f), int(t), during(what, wrap("cuMemGetInfo", err))
}

func (c *context) Synchronize() error {
	err := c.open()
	if err == nil {
		err = wrap("cuCtxSynchronize", cu.Synchronize())
	}
	return during("wait for the GPU", err)
}

func (c *context) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.onThisThread(c.clearing.Close)
	if released := c.ordinal.ReleasePrimaryCtx(); err == nil {
		err = wrap("cuDevicePrimaryCtxRelease", released)
	}
	return during("close the GPU", err)
}
