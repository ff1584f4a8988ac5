package disk

import (
	"errors"
	"syscall"
	"time"
)

// retryFor is how long Retry goes on.
const retryFor = time.Minute

// MayPass reports whether an error is a fault of the disk, or of the network that leads to it, that may pass: no space,
// or an I/O error.
func MayPass(err error) bool { return IsFull(err) || errors.Is(err, syscall.EIO) }

// Retry calls write until it succeeds, or fails for good. As long as its error may pass, Retry waits 0.25, 0.5, 1, 2, 4
// and then 8 seconds between the calls. It returns the last error after a minute.
func Retry(write func() error) error {
	for wait, waited := 250*time.Millisecond, time.Duration(0); ; wait = min(2*wait, 8*time.Second) {
		err := write()
		if err == nil || !MayPass(err) || waited >= retryFor {
			return err
		}
		time.Sleep(wait)
		waited += wait
	}
}
