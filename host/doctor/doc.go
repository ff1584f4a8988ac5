// Package doctor looks at a machine before a run does: the driver, the libraries, every GPU and what joins them, the limits of the
// operating system, and whether training could go where it was asked to go. Each finding is a line with a tick, a dash for what
// could be better, or a cross, and says what to do.
//
//	r := doctor.Examine(ctx, doctor.Config{Place: place, Version: "v1.0.0"})
//	r.Write(os.Stdout)
//	if !r.Works { ... } // at least one cross
//
// A cross means that training cannot work as it was asked for, and nothing else does. So a machine without a GPU has none, unless a GPU
// was asked for.
//
// Libraries of the driver can crash whoever loads them. Therefore package probe loads them in processes of their own.
package doctor
