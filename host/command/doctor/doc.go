// Package doctor inspects a machine before a run: driver, libraries, GPUs and their connections, limits of the
// operating system, and the requested placement. Each result is a line with a tick, with a dash and advice, or with a
// cross and the fix.
//
//	r := doctor.Examine(ctx, doctor.Config{Place: place, Version: "v1.0.0"})
//	r.Write(os.Stdout)
//	if !r.Works { ... } // at least one cross
//
// A line has a cross only if training with the requested settings cannot work. So a machine without a GPU has no cross,
// unless a GPU was requested.
//
// A library of the driver can crash the process that loads it. Therefore package probe loads each in a separate
// process.
package doctor
