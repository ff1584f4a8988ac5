package feed

import (
	"bufio"
	"encoding/gob"
	"net"
	"sync"

	"github.com/xtts-host/xtts-host/host/stages/supervise"
)

// request is a message of a guest.
type request struct {
	Kind   requestKind
	ID     uint64 // of a call, a kick or a kickAll: that of its answer; of a cancel: that of the call
	Plugin int
	Call   *supervise.Request
	// Process and Reason are those of a kick.
	Process supervise.ProcessID
	Reason  string
}

type requestKind uint8

const (
	call    requestKind = iota + 1 // a batch for a stage
	cancel                         // no one waits for the call any more
	kick                           // end a process
	kickAll                        // end all processes of a plugin
)

// answer is a message of the owner.
type answer struct {
	Kind   answerKind
	ID     uint64
	Result supervise.Result
	Err    []byte // supervise.EncodeError
	// Workers are the processes of each plugin, of ready.
	Workers []int
}

type answerKind uint8

const (
	ready    answerKind = iota + 1 // the plugins have started
	answered                       // the outcome of a request
	damaged                        // the memory was damaged, and all processes that could have done it have ended
)

// line is a connection over which both sides send messages.
type line struct {
	conn net.Conn
	dec  *gob.Decoder

	mu  sync.Mutex // guards the rest
	out *bufio.Writer
	enc *gob.Encoder
}

func newLine(conn net.Conn) *line {
	l := &line{conn: conn, dec: gob.NewDecoder(bufio.NewReader(conn)), out: bufio.NewWriter(conn)}
	l.enc = gob.NewEncoder(l.out)
	return l
}

// send writes a message. Any goroutine may call it. After an error, the connection is closed.
func (l *line) send(message any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.enc.Encode(message)
	if err == nil {
		err = l.out.Flush()
	}
	if err != nil {
		l.conn.Close()
	}
	return err
}

// receive reads the next message. One goroutine calls it.
func (l *line) receive(message any) error { return l.dec.Decode(message) }

// result is Result, with nil for the draws of a row without: a message has no bytes of it.
func (a *answer) result() supervise.Result {
	for i, d := range a.Result.Draws {
		if len(d) == 0 {
			a.Result.Draws[i] = nil
		}
	}
	return a.Result
}
