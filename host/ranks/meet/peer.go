package meet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// messageKind is what a message is.
type messageKind byte

const (
	value  messageKind = iota + 1 // of Gather, Share, Reduce
	note                          // for Config.Noted
	alive                         // nothing to say
	failed                        // why the sender ends
	bye                           // the sender has done its work
)

// A message has a kind, the number of a value, the length of what follows, and that.
const headerBytes = 1 + 4 + 4

// Limits of a message. A sum is divided into pieces below maxMessage.
const (
	maxMessage = 64 << 20
	maxText    = 4096
)

// peer is the connection with another rank.
type peer struct {
	conn net.Conn
	rank int
	host string // as it calls itself

	writing sync.Mutex
	heard   atomic.Int64 // time since epoch
	noting  atomic.Bool  // Config.Noted takes a note of it: it is not read
	values  chan message
	left    chan struct{} // closed when it has said how it ends
	ends    sync.Once
}

// message is a value of another rank.
type message struct {
	seq  uint32
	data []byte
}

func newPeer(conn net.Conn, rank int, host string) *peer {
	p := &peer{conn: conn, rank: rank, host: host, values: make(chan message, ahead+2), left: make(chan struct{})}
	p.hear()
	return p
}

// epoch is a time of the monotonic clock, which no one sets.
var epoch = time.Now()

// hear records that something was heard of the rank.
func (p *peer) hear() { p.heard.Store(int64(time.Since(epoch))) }

// silent returns for how long nothing was heard of the rank.
func (p *peer) silent() time.Duration {
	if p.noting.Load() {
		return 0
	}
	return time.Since(epoch) - time.Duration(p.heard.Load())
}

func (p *peer) String() string {
	return fmt.Sprintf("rank %d (%s)", p.rank, visible.Short(p.host, 80))
}

// errSilent means that a rank has not taken a message in time.
var errSilent = errors.New("nothing was taken")

// send writes a message. Any goroutine may call it.
func (p *peer) send(k messageKind, seq uint32, data []byte, limit time.Duration) error {
	header := make([]byte, headerBytes)
	header[0] = byte(k)
	binary.LittleEndian.PutUint32(header[1:], seq)
	binary.LittleEndian.PutUint32(header[5:], uint32(len(data)))
	p.writing.Lock()
	defer p.writing.Unlock()
	p.conn.SetWriteDeadline(time.Now().Add(limit))
	buffers := net.Buffers{header, data}
	_, err := buffers.WriteTo(p.conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSilent
	}
	return err
}

// receive reads a message. Whatever arrives of it shows that the rank lives.
func (p *peer) receive() (k messageKind, m message, err error) {
	var header [headerBytes]byte
	if err := p.read(header[:]); err != nil {
		return 0, m, err
	}
	k, m.seq = messageKind(header[0]), binary.LittleEndian.Uint32(header[1:])
	n := binary.LittleEndian.Uint32(header[5:])
	limit := uint32(maxMessage)
	if k == failed {
		limit = maxText
	}
	if n > limit {
		return 0, m, fmt.Errorf("a message of %d bytes", n)
	}
	m.data = buffer(int(n))
	return k, m, p.read(m.data)
}

// read fills data.
func (p *peer) read(data []byte) error {
	for len(data) > 0 {
		n, err := p.conn.Read(data)
		if n > 0 {
			p.hear()
		}
		if data = data[n:]; err != nil && len(data) > 0 {
			return err
		}
	}
	return nil
}

// closeWrite ends what this rank sends.
func (p *peer) closeWrite() {
	if c, ok := p.conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite()
	}
}

// listen takes the messages of a rank until it ends.
func (g *Group) listen(p *peer) {
	for {
		k, m, err := p.receive()
		if err != nil {
			if !p.said() && !g.isLeaving() {
				g.fail(g.gone(p, err))
			}
			return
		}
		switch k {
		case value:
			select {
			case p.values <- m:
			case <-g.leaving: // no one waits for it
			}
		case note:
			g.take(p, m.data)
		case alive:
		case bye:
			p.leave()
		case failed:
			g.fail(firstLine(string(m.data)))
			p.leave()
		default:
			g.fail(fmt.Sprintf("%s sent a message of kind %d", p, k))
			return
		}
	}
}

// take gives a note to Config.Noted, which may wait for a disk.
func (g *Group) take(p *peer, data []byte) {
	if g.cfg.Noted == nil {
		return
	}
	p.noting.Store(true)
	g.cfg.Noted(p.rank, data)
	p.hear()
	p.noting.Store(false)
}

// isLeaving reports whether this rank waits for no value any more.
func (g *Group) isLeaving() bool {
	select {
	case <-g.leaving:
		return true
	default:
		return false
	}
}

// beat is the time between two signs of life.
const beat = time.Second

// keepAlive tells a rank that this one lives, also one that has done its work and waits for this one, and notices that
// the rank is silent.
func (g *Group) keepAlive(p *peer) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-tick.C:
		case <-g.leaving:
			return
		case <-g.lost:
			return
		}
		if time.Since(last) > 5*beat { // this process was stopped: what the rank sent has not been read yet
			p.hear()
		}
		if p.silent() > g.cfg.Silence && !p.said() {
			g.fail(fmt.Sprintf("nothing was heard of %s for %g s (--rank-timeout)", p, g.cfg.Silence.Seconds()))
			return
		}
		if err := p.send(alive, 0, nil, g.cfg.Silence); err != nil {
			// An end that has a reason comes as a message, which may still be on its way.
			select {
			case <-g.lost:
			case <-g.leaving:
			case <-p.left:
			case <-time.After(beat):
				g.fail(g.gone(p, err))
			}
			return
		}
		last = time.Now()
	}
}

// leave records that the rank has said how it ends.
func (p *peer) leave() { p.ends.Do(func() { close(p.left) }) }

// said reports whether the rank has said how it ends.
func (p *peer) said() bool {
	select {
	case <-p.left:
		return true
	default:
		return false
	}
}

// Note sends data to Config.Noted of rank 0. On rank 0 it does nothing.
func (g *Group) Note(data []byte) error {
	if g.cfg.World.Leads() {
		return nil
	}
	if err := g.peers[0].send(note, 0, data, g.cfg.Silence); err != nil {
		g.failSoon(g.peers[0], err)
		return g.Err()
	}
	return nil
}

// buffers are those of messages that were combined.
var buffers sync.Pool

func buffer(n int) []byte {
	if n == 0 {
		return nil
	}
	if b, ok := buffers.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n)
}

func recycle(data []byte) { buffers.Put(&data) }

// firstLine returns the first line of a text, shortened.
func firstLine(text string) string {
	line, _, _ := bytes.Cut([]byte(text), []byte("\n"))
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, nil)
	}
	return visible.Short(string(line), maxText/2)
}
