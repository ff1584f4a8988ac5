// Package nvml implements gpu.Inventory with NVIDIA's management library (libnvidia-ml, which comes with the driver).
// It is part of every build: Open loads the library, and a machine without it has an inventory without devices.
//
//	inventory, err := nvml.Open()
//	if err != nil {
//		return err // there is a driver, but it does not work: *gpu.AdvisedError has a hint
//	}
//	defer inventory.Close()
//	for _, d := range inventory.Devices() { ... }
//
// The package avoids two problems of the binding. Before a successful Init, and after Shutdown, any call ends the
// process with "symbol lookup error"; so all methods are usable only between Open and Close. A function that the
// installed driver does not have ends the process too; so the package calls only functions that all drivers since CUDA
// 11 have, and the binding selects their versions. It looks up the one newer function before it calls it.
//
// One problem remains: the program is linked with symbols that only the library resolves, so it cannot start under
// LD_BIND_NOW=1.
package nvml
