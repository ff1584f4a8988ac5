package debug

import (
	"encoding/json"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// interval is the time between two samples: a collection of a heap of some MiB takes milliseconds.
const interval = 5 * time.Second

// Sample is a line of memory.jsonl.
type Sample struct {
	Host       int     `json:"host"`       // process id
	Seconds    float64 `json:"s"`          // since the folder was opened
	HeapBytes  uint64  `json:"heap_bytes"` // live, just collected
	Goroutines int     `json:"goroutines"`
	// Descriptors are the open ones, those of the sample itself included.
	Descriptors int `json:"descriptors"`
}

// sampler writes a Sample every interval, from a goroutine that close waits for. Nil does nothing.
type sampler struct {
	file  *files.File
	began time.Time
	stop  chan struct{}
	once  sync.Once
	done  chan struct{}
	err   error // of the first line that could not be written; read after done
}

func startSampler(path string) (*sampler, error) {
	// Appended: a resumed run continues the file.
	file, err := files.At(path).Append()
	if err != nil {
		return nil, err
	}
	s := &sampler{file: file, began: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s, nil
}

func (s *sampler) run() {
	defer close(s.done)
	t := time.NewTicker(interval)
	defer t.Stop()
	for s.err == nil {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.err = s.write()
		}
	}
}

func (s *sampler) write() error {
	v := Sample{Host: os.Getpid(), Seconds: time.Since(s.began).Seconds(), Goroutines: runtime.NumGoroutine()}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	v.Descriptors = len(fds)
	// Twice: the first collection only ages the values in sync.Pools.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	v.HeapBytes = m.HeapAlloc
	return json.NewEncoder(s.file).Encode(v)
}

func (s *sampler) close() error {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		close(s.stop)
		<-s.done
		if err := s.file.Close(); s.err == nil {
			s.err = err
		}
	})
	return s.err
}
