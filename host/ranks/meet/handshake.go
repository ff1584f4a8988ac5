package meet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/ranks/proof"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The handshake. Rank 0 sends greeting and a number that was never used before. The other rank answers with a number of
// its own, its rank, the number of ranks, its machine, and the HMAC-SHA256 of all these with the secret. Rank 0 answers
// with the HMAC of the same under another name, which shows that it knows the secret too, and, when all ranks are
// there, with the reason why it refuses the rank, or nothing. Neither side can repeat an answer of another connection.
const greeting = "xtts-host ranks 1\n"

const maxHost = 255

// admit lets a rank in that shows the secret.
func (c *Config) admit(conn net.Conn, name string) (*peer, error) {
	conn.SetDeadline(time.Now().Add(proof.Patience))
	mine := proof.Nonce()
	if _, err := conn.Write(append([]byte(greeting), mine...)); err != nil {
		return nil, err
	}
	theirs, head := make([]byte, proof.NonceBytes), make([]byte, 9)
	if err := readAll(conn, theirs, head); err != nil {
		return nil, proof.ErrStranger
	}
	host, sum := make([]byte, head[8]), make([]byte, proof.Bytes)
	if err := readAll(conn, host, sum); err != nil {
		return nil, proof.ErrStranger
	}
	claims := append(head, host...)
	if !proof.Equal(sum, proof.Of(c.Secret, "rank", mine, theirs, claims)) {
		return nil, proof.ErrStranger
	}
	if _, err := conn.Write(append(proof.Of(c.Secret, "lead", mine, theirs, claims), text(name)...)); err != nil {
		return nil, err
	}
	rank, size := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	p := newPeer(conn, int(rank), string(host))
	if int(size) != c.World.Size || rank == 0 || int(rank) >= c.World.Size {
		why := fmt.Sprintf("it is rank %d of %d, and rank 0 is one of %d", rank, size, c.World.Size)
		_ = answer(conn, why)
		return nil, errors.New(why)
	}
	conn.SetDeadline(time.Time{})
	return p, nil
}

// introduce shows rank 0 the secret, and waits until all ranks are there.
func (c *Config) introduce(conn net.Conn, name string) (*peer, error) {
	conn.SetDeadline(time.Now().Add(proof.Patience))
	hello, theirs := make([]byte, len(greeting)), make([]byte, proof.NonceBytes)
	n, err := io.ReadFull(conn, hello)
	if string(hello[:n]) != greeting[:n] || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, refused("what listens at %s is not rank 0 of a run of this version", c.Address)
	}
	if err == nil {
		err = readAll(conn, theirs)
	}
	if err != nil { // it has ended before it could answer, and may be started again
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: err}
	}
	mine, claims := proof.Nonce(), make([]byte, 8)
	binary.LittleEndian.PutUint32(claims, uint32(c.World.Rank))
	binary.LittleEndian.PutUint32(claims[4:], uint32(c.World.Size))
	claims = append(claims, text(name)...)
	all := append(append(append([]byte{}, mine...), claims...), proof.Of(c.Secret, "rank", theirs, mine, claims)...)
	if _, err := conn.Write(all); err != nil {
		return nil, refused("rank 0 at %s has closed the connection", c.Address)
	}
	sum, length := make([]byte, proof.Bytes), make([]byte, 1)
	if err := readAll(conn, sum, length); err != nil {
		return nil, refused("rank 0 at %s has closed the connection: it has another secret, or it has ended", c.Address)
	}
	if !proof.Equal(sum, proof.Of(c.Secret, "lead", theirs, mine, claims)) {
		return nil, refused("rank 0 at %s has another secret", c.Address)
	}
	host, why := make([]byte, length[0]), make([]byte, 2)
	if err := readAll(conn, host); err != nil {
		return nil, &LostError{"rank 0 ended before all ranks had joined"}
	}
	conn.SetDeadline(time.Time{}) // the other ranks may come later; the caller's context ends the wait
	if err := readAll(conn, why); err != nil {
		return nil, &LostError{"rank 0 ended before all ranks had joined"}
	}
	if n := binary.LittleEndian.Uint16(why); n > 0 {
		reason := make([]byte, n)
		if err := readAll(conn, reason); err != nil {
			reason = []byte("it gives no reason")
		}
		return nil, c.refusal(firstLine(string(reason)))
	}
	return newPeer(conn, 0, string(host)), nil
}

// refused is the error of a rank that found something else than its rank 0.
func refused(format string, args ...any) error {
	return exit.Refused(hint.Errorf("start all ranks with the same MASTER_ADDR, MASTER_PORT and secret", format,
		args...))
}

// answer ends the handshake: with the reason why a rank is refused, or with "".
func answer(conn net.Conn, why string) error {
	conn.SetWriteDeadline(time.Now().Add(proof.Patience))
	data := binary.LittleEndian.AppendUint16(nil, uint16(len(why)))
	_, err := conn.Write(append(data, why...))
	return err
}

// text returns a name with its length before it.
func text(name string) []byte {
	name = name[:min(len(name), maxHost)]
	return append([]byte{byte(len(name))}, name...)
}

func readAll(conn net.Conn, parts ...[]byte) error {
	for _, p := range parts {
		if _, err := io.ReadFull(conn, p); err != nil {
			return err
		}
	}
	return nil
}
