package debug

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The names in the folder.
const (
	ledgerFile    = "ledger.jsonl"
	memoryFile    = "memory.jsonl"
	socketFile    = "phases.sock"
	batchesFolder = "batches"
)

// Folder is an open --debug-dir. Nil is one that was not asked for. It is safe for concurrent use.
type Folder struct {
	dir    string
	memory *sampler
	// batches is set if training batches are written.
	batches bool

	mu     sync.Mutex // held from a point's announcement to its answer: one point at a time
	conn   net.Conn   // nil without a harness
	answer *bufio.Reader
}

// Point is a place in the protocol that a run has come to.
type Point struct {
	// Phase is its name: docs/torture.md lists them.
	Phase string `json:"phase"`
	// Host is the id of the process that reports; Reach sets it.
	Host int `json:"host"`
	// Plugin, PID, Worker and Generation name the plugin process that the point is about, if it is about one.
	Plugin     string `json:"plugin,omitempty"`
	PID        int    `json:"pid,omitempty"`
	Worker     int    `json:"worker"`
	Generation int    `json:"generation"`
}

// Check returns an error if Open would fail because the folder cannot be made or written. It changes nothing.
func Check(dir string) error {
	if err := disk.CheckFolder(dir); err != nil {
		return hint.Errorf(advice, "--debug-dir %s: %w", dir, err)
	}
	return nil
}

const advice = "name a folder that can be made or written to"

// Open opens the folder, making it if need be, connects to the harness if one listens, and begins to sample memory.
// It returns nil for "".
func Open(dir string) (*Folder, error) {
	if dir == "" {
		return nil, nil
	}
	if err := Check(dir); err != nil {
		return nil, err
	}
	if err := files.In(dir).MkdirAll(); err != nil {
		return nil, hint.Errorf(advice, "--debug-dir: %w", err)
	}
	f := &Folder{dir: dir, batches: hasBatches(dir)}
	socket := filepath.Join(dir, socketFile)
	if _, err := os.Lstat(socket); err == nil { // the folder's path may be longer than a socket's
		conn, err := net.Dial("unix", socket)
		switch {
		case err == nil:
			f.conn, f.answer = conn, bufio.NewReader(conn)
		// one that a dead harness left is none
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED):
			return nil, fmt.Errorf("--debug-dir: %w", err)
		}
	}
	var err error
	if f.memory, err = startSampler(filepath.Join(dir, memoryFile)); err != nil {
		f.Close()
		return nil, fmt.Errorf("--debug-dir: %w", err)
	}
	return f, nil
}

// Ledger returns the path of the ledger, "" when there is none.
func (f *Folder) Ledger() string {
	if f == nil {
		return ""
	}
	return filepath.Join(f.dir, ledgerFile)
}

// Reach reports a point to the harness and waits for its answer, a line. If the harness has gone, it gets no more lines
// and the run continues without it.
func (f *Folder) Reach(p Point) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn == nil {
		return
	}
	p.Host = os.Getpid()
	err := json.NewEncoder(f.conn).Encode(p)
	if err == nil {
		_, err = f.answer.ReadString('\n')
	}
	if err != nil {
		f.conn.Close()
		f.conn = nil
	}
}

// Close ends the sampling and the connection. It may be called again.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	if f.conn != nil {
		f.conn.Close()
		f.conn = nil
	}
	f.mu.Unlock()
	return f.memory.close()
}
