// Package systemd tells systemd how a run is, if it is the main process of a service: a line for systemctl status, and
// the watchdog's signal as long as the run makes progress.
//
//	if n := systemd.Open(warn); n != nil {
//		bus.Offer("systemd", n, warn)
//	}
package systemd

import (
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/health"
)

// often is the longest time between two lines of a run whose service has no watchdog.
const often = 10 * time.Second

// Notifier is a best-effort sink that notifies systemd from a goroutine of its own, so that a watchdog is answered
// while nothing happens, too.
type Notifier struct {
	judge *health.Judge
	stop  func()
	done  chan struct{}
}

// Open returns a Notifier that has notified systemd, or nil if systemd does not ask for it. fault is called once, if
// systemd cannot be told: the run goes on.
func Open(fault func(text string)) *Notifier {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		fault("systemd: " + err.Error() + "; its watchdog gets no signals")
	}
	n := &Notifier{judge: health.New(), done: make(chan struct{})}
	if told, err := n.notify(); err != nil {
		fault("systemd: " + err.Error() + "; it is told nothing")
		return nil
	} else if !told {
		return nil
	}
	every := often
	if watchdog > 0 {
		every = min(often, watchdog/2)
	}
	stop := make(chan struct{})
	n.stop = sync.OnceFunc(func() { close(stop) })
	go n.run(every, stop)
	return n
}

// run notifies until it is stopped. A notification that fails now may succeed the next time.
func (n *Notifier) run(every time.Duration, stop <-chan struct{}) {
	defer close(n.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.notify()
		case <-stop:
			return
		}
	}
}

// notify sends the line, and the watchdog's signal if the run makes progress. told is false without a service.
func (n *Notifier) notify() (told bool, err error) {
	line, alive := n.judge.Alive()
	text := "STATUS=" + line
	if alive {
		text += "\n" + daemon.SdNotifyWatchdog
	}
	return daemon.SdNotify(false, text)
}

// Take implements event.Sink.
func (n *Notifier) Take(events []event.Event) error { return n.judge.Take(events) }

// Close implements event.Sink.
func (n *Notifier) Close() error {
	n.stop()
	<-n.done
	return nil
}
