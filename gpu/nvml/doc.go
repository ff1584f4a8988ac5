// Package nvml is a gpu.Inventory by NVIDIA's management library (libnvidia-ml, which comes with the driver). It is in every
// build: the library is loaded when Open is called, and a machine without it has an inventory without devices.
//
//	inventory, err := nvml.Open()
//	if err != nil {
//		return err // there is a driver, and it does not work: *gpu.AdvisedError says what to do
//	}
//	defer inventory.Close()
//	for _, d := range inventory.Devices() { ... }
//
// Two traps of the binding are closed here. Before a successful Init, and after Shutdown, any call ends the process with "symbol lookup
// error": every method is behind Open and before Close. A function that the installed driver is too old for does the same: only
// functions are called that all drivers since CUDA 11 have, and the binding itself picks their versions.
//
// A third one stays open: the program is linked with symbols that only the library resolves, so it cannot start under LD_BIND_NOW=1.
package nvml
