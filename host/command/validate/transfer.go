package validate

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/command/preflight"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Route is the path of a batch: the ring, through the GPU of the plugins and back, then to the model's device slots.
// One goroutine calls it.
type Route interface {
	// Sizes returns the size of a batch of each bucket, in bytes.
	Sizes() []int
	// Slots is the number of device slots.
	Slots() int
	// From and To name the two ends for the user, such as "GPU 0" or "the CPU".
	From() string
	To() string
	// Ring returns ring slot 0 or 1, which are large enough for any batch. The caller may write to them.
	Ring(slot int) []byte
	// Relay makes another process, in place of a plugin, copy n bytes of ring slot 0 to ring slot 1, through the GPU of
	// the plugins if they use one. It returns the time of a copy from there to the ring.
	Relay(ctx context.Context, n int) (time.Duration, error)
	// Load copies a batch of a bucket from a ring slot to a device slot, Unload back.
	Load(device, bucket, ring int) error
	Unload(device, bucket, ring int) error
}

// Arrival is the check of the whole route. It passes only if all checks of Transfer pass.
const Arrival = "plugins to model"

// Transfer returns checks that send patterns along a route and verify the result. They depend on the named checks.
func Transfer(route Route, needs ...string) []preflight.Check {
	const relay, load = "plugins to ring", "ring to model"
	return []preflight.Check{
		{Name: relay, Needs: needs, Try: func(ctx context.Context) (string, error) { return relayed(ctx, route) }},
		{Name: load, Needs: needs, Try: func(context.Context) (string, error) { return loaded(route) }},
		{Name: Arrival, Needs: []string{relay, load}, Try: func(context.Context) (string, error) {
			return through(route)
		}},
	}
}

// relayed sends the largest batch through another process to ring slot 1, which had other content, and leaves it there.
func relayed(ctx context.Context, r Route) (string, error) {
	sent := pattern(r.Sizes()[largest(r)], relayKey)
	copy(r.Ring(0), sent)
	clear(r.Ring(1))
	took, err := r.Relay(ctx, len(sent))
	if err != nil {
		return "", err
	}
	if err := differ(
		r.Ring(1)[:len(sent)], sent, fmt.Sprintf("from the plugins' side (%s) to the ring", r.From()),
	); err != nil {
		return "", err
	}
	return fmt.Sprintf("another process, on %s: %s, no byte changed", r.From(), speed(len(sent), took)), nil
}

// loaded sends a batch of every bucket to every device slot, each with other content, and then verifies all of them. So
// it finds a transfer to a wrong slot.
func loaded(r Route) (string, error) {
	var took time.Duration
	for bucket, n := range r.Sizes() {
		for device := range r.Slots() {
			copy(r.Ring(0), pattern(n, key(bucket, device)))
			began := time.Now()
			if err := r.Load(device, bucket, 0); err != nil {
				return "", err
			}
			if bucket == largest(r) {
				took = time.Since(began) // the last is after the most warm-up
			}
		}
		for device := range r.Slots() {
			if err := arrived(r, device, bucket, pattern(n, key(bucket, device))); err != nil {
				return "", err
			}
		}
	}
	n := r.Sizes()[largest(r)]
	return fmt.Sprintf("to %s, %d device slots, %d sizes: %s, no byte changed", r.To(), r.Slots(), len(r.Sizes()),
			speed(n, took)),
		nil
}

// arrived verifies a device slot.
func arrived(r Route, device, bucket int, sent []byte) error {
	clear(r.Ring(0))
	if err := r.Unload(device, bucket, 0); err != nil {
		return err
	}
	return differ(r.Ring(0)[:len(sent)], sent,
		fmt.Sprintf("from the ring to device slot %d on %s, bucket %d", device, r.To(), bucket))
}

// through sends the relayed batch on to a device slot, so it has passed the whole route.
func through(r Route) (string, error) {
	bucket := largest(r)
	sent := pattern(r.Sizes()[bucket], relayKey)
	if err := r.Load(0, bucket, 1); err != nil {
		return "", err
	}
	if err := arrived(r, 0, bucket, sent); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s -> ring -> %s: %d bytes, no byte changed", r.From(), r.To(), len(sent)), nil
}

func largest(r Route) int {
	at := 0
	for i, n := range r.Sizes() {
		if n > r.Sizes()[at] {
			at = i
		}
	}
	return at
}

// key identifies the pattern of a transfer. It differs from relayKey.
func key(bucket, device int) uint64 { return uint64(bucket)<<32 | uint64(device) + 1 }

const relayKey = 0

// pattern returns n bytes: each value once, then noise that depends on key. So lost, moved and old bytes are noticed.
func pattern(n int, key uint64) []byte {
	p := make([]byte, n)
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(key >> (8 * i))
	}
	rand.NewChaCha8(seed).Read(p)
	for i := range min(n, 256) {
		p[i] = byte(i) ^ byte(key)
	}
	return p
}

// differ returns an error if got is not what was sent.
func differ(got, sent []byte, way string) error {
	if bytes.Equal(got, sent) {
		return nil
	}
	first, n := -1, 0
	for i := range sent {
		if got[i] != sent[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	return hint.Errorf(
		"repeat it; if it fails again, the RAM, the GPU or the PCIe link is faulty: see dmesg and nvidia-smi -q",
		"%d of %d bytes differ after the transfer %s, the first is byte %d: %#02x instead of %#02x", n, len(sent), way,
		first, got[first], sent[first])
}

// speed formats the size and speed of a copy.
func speed(n int, took time.Duration) string {
	took = max(took, time.Nanosecond) // the clock may not advance
	return fmt.Sprintf("%.2f MiB in %.1f µs (%.1f GB/s)", float64(n)/gpu.MB, float64(took)/float64(time.Microsecond),
		float64(n)/float64(took))
}
