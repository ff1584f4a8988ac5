// Package address takes the addresses at which a program serves what a flag names.
//
//	metrics := address.Flag{Name: "--metrics", Example: "127.0.0.1:9464"}
//	listener, err := metrics.Listen("127.0.0.1:9464")
package address

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Flag is a flag that names an address to listen on.
type Flag struct {
	// Name is as it is typed, and Example an address that only programs of this machine reach.
	Name, Example string
}

// parse reads an address. It asks no name server.
func (f Flag) parse(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if number, perr := strconv.ParseUint(port, 10, 16); err == nil && (perr != nil || number == 0) {
		err = strconv.ErrRange // a port that the system chooses is known to no one
	}
	if err == nil && host == "localhost" {
		host = "127.0.0.1"
	}
	ip, ierr := netip.ParseAddr(host)
	if err != nil || ierr != nil {
		return "", hint.Errorf("name an IP address or localhost, and a port, as in "+f.Name+" "+f.Example,
			"%s %s: not an address to listen on", f.Name, address)
	}
	return net.JoinHostPort(ip.String(), port), nil
}

// Public reports whether other machines may reach an address.
func Public(address string) bool {
	host, err := Flag{}.parse(address)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddrPort(host)
	return err == nil && !at.Addr().IsLoopback()
}

// Listen takes an address. Its errors have hints.
func (f Flag) Listen(address string) (net.Listener, error) {
	at, err := f.parse(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, hint.Errorf("another program, perhaps another run, serves there: choose another port",
			"%s %s: the address is in use", f.Name, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, hint.Errorf("name an address of this machine, as in "+f.Name+" "+f.Example,
			"%s %s: this machine does not have the address", f.Name, address)
	case errors.Is(err, syscall.EACCES):
		return nil, hint.Errorf("choose a port from 1024 on", "%s %s: this user may not listen there", f.Name, address)
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", f.Name, address, err)
	}
	return l, nil
}

// Check tries whether Listen could take an address.
func (f Flag) Check(address string) error {
	l, err := f.Listen(address)
	if err != nil {
		return err
	}
	return l.Close()
}
