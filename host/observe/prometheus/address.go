package prometheus

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Example is an address that only programs of this machine reach.
const Example = "127.0.0.1:9464"

// parse reads an address. It asks no name server.
func parse(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if number, perr := strconv.ParseUint(port, 10, 16); err == nil && (perr != nil || number == 0) {
		err = strconv.ErrRange // a port that the system chooses is known to no one
	}
	if err == nil && host == "localhost" {
		host = "127.0.0.1"
	}
	ip, ierr := netip.ParseAddr(host)
	if err != nil || ierr != nil {
		return "", hint.Errorf("name an IP address and a port, as in --metrics "+Example,
			"--metrics %s: not an address to listen on", address)
	}
	return net.JoinHostPort(ip.String(), port), nil
}

// Public reports whether other machines may reach an address.
func Public(address string) bool {
	host, err := parse(address)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddrPort(host)
	return err == nil && !at.Addr().IsLoopback()
}

// listen takes an address.
func listen(address string) (net.Listener, error) {
	at, err := parse(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, hint.Errorf("another run may serve its figures there: choose another port",
			"--metrics %s: the address is in use", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, hint.Errorf("name an address of this machine, as in --metrics "+Example,
			"--metrics %s: this machine does not have the address", address)
	case errors.Is(err, syscall.EACCES):
		return nil, hint.Errorf("choose a port from 1024 on", "--metrics %s: this user may not listen there", address)
	case err != nil:
		return nil, fmt.Errorf("--metrics %s: %w", address, err)
	}
	return l, nil
}

// Check tries whether a run could listen.
func Check(address string) error {
	l, err := listen(address)
	if err != nil {
		return err
	}
	return l.Close()
}
