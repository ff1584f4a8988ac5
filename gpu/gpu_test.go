package gpu

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestDetect(t *testing.T) {
	card := func(model, uuid, bus string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("Model: \t\t " + model + "\nIRQ:   \t\t 42\nGPU UUID: \t " + uuid +
			"\nVideo BIOS: \t 96.00\nBus Location: \t " + bus + "\n")}
	}
	root := fstest.MapFS{
		"proc/driver/nvidia/gpus/0000:db:00.0/information": card("NVIDIA H200", "GPU-bbbb", "0000:db:00.0"),
		"proc/driver/nvidia/gpus/0000:1b:00.0/information": card("NVIDIA L4", "GPU-aaaa", "0000:1b:00.0"),
	}
	got, err := detect(root)
	want := []Device{
		{Index: 0, UUID: "GPU-aaaa", PCI: "0000:1b:00.0", Name: "NVIDIA L4"},
		{Index: 1, UUID: "GPU-bbbb", PCI: "0000:db:00.0", Name: "NVIDIA H200"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDetectWithoutDriver(t *testing.T) {
	if got, err := detect(fstest.MapFS{}); err != nil || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
