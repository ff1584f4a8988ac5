package dashboard

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// TestCloseWithoutDisk: the end of the server does not wait for a disk that does not answer, neither with the last
// message nor with a look that is under way.
func TestCloseWithoutDisk(t *testing.T) {
	s := serve(t, Config{})
	s.Show(small(t))
	r := s.all()[0]
	// A look at the files holds this lock until the disk has answered.
	disk := (*sync.Mutex)(reflect.ValueOf(r.Run).Elem().FieldByName("mu").Addr().UnsafePointer())
	disk.Lock()
	defer disk.Unlock()
	r.hub.join()
	r.hub.look()
	for len(r.hub.reading) == 0 { // until the server is in a look
		time.Sleep(time.Millisecond)
	}
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute): // it takes seconds
		t.Fatal("the end waits for the disk")
	}
}

// TestLateBeat: a look that began before the end of a run does not replace the last state.
func TestLateBeat(t *testing.T) {
	s, bus := liveServer(t)
	defer bus.Close()
	s.Take([]event.Event{&event.Phase{Phase: event.Training}})
	h := &s.all()[0].hub
	h.join()
	state, picture := h.messages(t.Context(), true)
	if !strings.Contains(string(state), `"status":"training"`) {
		t.Fatalf("%s", state)
	}
	write(t, s.all()[0].Folder(), rundir.ReportFile, []byte(`{"outcome":"done","steps":2}`))
	s.live.end()
	h.last(t.Context(), nil)
	h.tell(state, picture, false)
	if !strings.Contains(string(h.state), `"status":"done"`) {
		t.Errorf("%s", h.state)
	}
}
