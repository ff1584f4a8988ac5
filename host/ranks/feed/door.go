package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/socketdir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/ranks/proof"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// door is the socket at which the guests of a machine knock: in a folder for this user alone, which is removed when all
// guests are in.
//
// The owner sends greeting and a nonce. A guest answers with a nonce of its own, its rank and a proof that it knows the
// secret of the run. The owner answers with such a proof, and with it the descriptor of the ring. Neither side reads or
// sends anything else before.
type door struct {
	dir      *socketdir.Dir
	listener *net.UnixListener
}

const (
	greeting = "xtts-host feed 1\n"
	socket   = "/feed"
)

func openDoor() (*door, error) {
	socketdir.Sweep(len(socket))
	dir, err := socketdir.New(len(socket))
	if err != nil {
		return nil, fmt.Errorf("make the socket of the ranks: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir.Path, socket), Net: "unix"})
	if err != nil {
		dir.Remove()
		return nil, hint.Errorf("set TMPDIR to a folder of a file system that has sockets", "%w", err)
	}
	return &door{dir, l}, nil
}

func (d *door) path() string { return d.listener.Addr().String() }

// close removes socket and folder.
func (d *door) close() {
	d.listener.Close()
	d.dir.Remove()
}

// knocker is a connection of a guest.
type knocker struct {
	conn *net.UnixConn
	rank int
}

// admit lets in the guests that expected has, each once, and gives them the descriptor of the ring. It returns when all
// are in, or when ctx ends.
func (d *door) admit(ctx context.Context, c *Config, expected map[int]bool, memory *os.File) (_ []knocker, err error) {
	in := make(chan knocker)
	open, shut := context.WithCancel(ctx)
	var knocking sync.WaitGroup
	defer knocking.Wait()
	defer shut()
	context.AfterFunc(open, func() { d.listener.Close() })
	knocking.Go(func() { d.accept(open, c, &knocking, in) })
	var all []knocker
	defer func() {
		for _, k := range all {
			if err != nil {
				k.conn.Close()
			}
		}
	}()
	for len(expected) > 0 {
		select {
		case k := <-in:
			if !expected[k.rank] {
				k.conn.Close()
				c.refuse(fmt.Errorf("rank %d is not expected", k.rank))
				continue
			}
			delete(expected, k.rank)
			all = append(all, k)
			if err := hand(k.conn, memory); err != nil {
				return all, c.lost(k.rank, ctx.Done())
			}
		case <-ctx.Done():
			return all, context.Cause(ctx)
		}
	}
	return all, nil
}

// accept passes on who has shown the secret.
func (d *door) accept(ctx context.Context, c *Config, knocking *sync.WaitGroup, in chan<- knocker) {
	trying := make(chan struct{}, proof.MaxStrangers)
	for {
		conn, err := d.listener.AcceptUnix()
		if err != nil {
			return // the listener is closed
		}
		trying <- struct{}{}
		knocking.Go(func() {
			defer func() { <-trying }()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			rank, err := identify(conn, c.Secret)
			if !stop() {
				return
			}
			if err != nil {
				conn.Close()
				c.refuse(err)
				return
			}
			select {
			case in <- knocker{conn, rank}:
			case <-ctx.Done():
				conn.Close()
			}
		})
	}
}

// refuse says that a connection was refused.
func (c *Config) refuse(why error) {
	c.Say("refused a connection of ranks on this machine: " + visible.Text(why.Error()))
}

// identify returns the rank of a guest that shows the secret, and shows it in turn.
func identify(conn *net.UnixConn, secret string) (int, error) {
	conn.SetDeadline(time.Now().Add(proof.Patience))
	mine := proof.Nonce()
	if _, err := conn.Write(append([]byte(greeting), mine...)); err != nil {
		return 0, proof.ErrStranger
	}
	answer := make([]byte, proof.NonceBytes+4+proof.Bytes)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return 0, proof.ErrStranger
	}
	theirs, claims, sum := answer[:proof.NonceBytes], answer[proof.NonceBytes:proof.NonceBytes+4],
		answer[proof.NonceBytes+4:]
	if !proof.Equal(sum, proof.Of(secret, "guest", mine, theirs, claims)) {
		return 0, proof.ErrStranger
	}
	if _, err := conn.Write(proof.Of(secret, "owner", mine, theirs, claims)); err != nil {
		return 0, err
	}
	conn.SetDeadline(time.Time{})
	return int(binary.LittleEndian.Uint32(claims)), nil
}

// hand sends the descriptor of the ring.
func hand(conn *net.UnixConn, memory *os.File) error {
	_, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(memory.Fd())), nil)
	return err
}

// knock shows the owner the secret, and returns the connection with the descriptor of the ring. The owner may still be
// busy with the memory, so ctx alone ends the wait.
func knock(ctx context.Context, path string, rank int, secret string) (_ *net.UnixConn, memory *os.File, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if memory, err = introduce(conn, rank, secret); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, memory, nil
}

// introduce is the part of a guest in the handshake.
func introduce(conn *net.UnixConn, rank int, secret string) (*os.File, error) {
	hello := make([]byte, len(greeting)+proof.NonceBytes)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return nil, err
	}
	if string(hello[:len(greeting)]) != greeting {
		return nil, exit.Refused(errors.New("what listens at the socket of the ranks is none of this version"))
	}
	theirs, mine, claims := hello[len(greeting):], proof.Nonce(), make([]byte, 4)
	binary.LittleEndian.PutUint32(claims, uint32(rank))
	all := append(append(append([]byte{}, mine...), claims...), proof.Of(secret, "guest", theirs, mine, claims)...)
	if _, err := conn.Write(all); err != nil {
		return nil, err
	}
	sum := make([]byte, proof.Bytes)
	if _, err := io.ReadFull(conn, sum); err != nil {
		return nil, err
	}
	if !proof.Equal(sum, proof.Of(secret, "owner", theirs, mine, claims)) {
		return nil, exit.Refused(proof.ErrStranger)
	}
	one, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.ReadMsgUnix(one, oob)
	if err != nil || n == 0 {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return descriptor(oob[:oobn])
}

// descriptor returns the file that a control message carries.
func descriptor(oob []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	var fds []int
	if err == nil && len(messages) == 1 {
		fds, err = unix.ParseUnixRights(&messages[0])
	}
	if err != nil {
		return nil, fmt.Errorf("take the descriptor of the ring: %w", err)
	}
	if len(fds) != 1 {
		return nil, fmt.Errorf("the owner of the ring has sent %d descriptors, not 1", len(fds))
	}
	return os.NewFile(uintptr(fds[0]), "xtts-host-ring"), nil
}
