package meet

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// isTaken is what a rank hears that is not the first of its number.
const isTaken = "is taken"

// take holds this rank of the run on this machine, so that another process that was started as the same rank is refused
// at once, whether rank 0 has come or not. It holds a name of the kernel, which is free when the process ends. Without
// such names, or if another user holds it, that is nil: rank 0 refuses the second process where it can.
func (c *Config) take() (net.Listener, error) {
	h := hmac.New(sha256.New, []byte(c.Secret))
	fmt.Fprintf(h, "rank %d of %s", c.World.Rank, c.Address)
	name := fmt.Sprintf("@xtts-host-%x", h.Sum(nil)[:16])
	l, err := net.Listen("unix", name)
	if err == nil {
		return l, nil
	}
	pid, uid := holder(name)
	if !errors.Is(err, syscall.EADDRINUSE) || pid == 0 || uid != os.Getuid() {
		return nil, nil
	}
	return nil, c.taken(fmt.Sprintf("rank %d of the run at %s %s by process %d of this machine", c.World.Rank,
		c.Address, isTaken, pid))
}

// letGo ends what take holds.
func letGo(held net.Listener) {
	if held != nil {
		held.Close()
	}
}

// holder is the process that holds a name, and its user; 0 if that is not known.
func holder(name string) (pid, uid int) {
	conn, err := net.Dial("unix", name)
	if err != nil {
		return 0, 0
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid, uid = int(cred.Pid), int(cred.Uid)
		}
	})
	return pid, uid
}

// taken is the error of a second process with one rank.
func (c *Config) taken(text string) error {
	return exit.Refused(hint.Errorf(fmt.Sprintf("each process has a RANK of its own, from 0 to %d; one of a former "+
		"start must end first", c.World.Size-1), "%s", text))
}

// refusal is the error of what rank 0 says when it refuses this rank.
func (c *Config) refusal(why string) error {
	if strings.Contains(why, isTaken) {
		return c.taken(fmt.Sprintf("rank 0 at %s refuses this process: %s", c.Address, why))
	}
	return disagreement("rank 0 at %s refuses this process: %s", c.Address, why)
}
