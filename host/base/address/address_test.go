package address

import (
	"net"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

func TestAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	used := l.Addr().String()
	f := Flag{Name: "--metrics", Example: "127.0.0.1:9464"}
	for address, want := range map[string]string{
		used:   "the address is in use",
		"9464": "not an address", ":9464": "not an address", "example.org:1": "not an address",
		"127.0.0.1:70000": "not an address", "127.0.0.1": "not an address", "127.0.0.1:0": "not an address",
		"192.0.2.1:1025": "does not have the address",
	} {
		err := f.Check(address)
		if err == nil || !strings.HasPrefix(err.Error(), "--metrics "+address+": ") ||
			!strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%s: error %v (%s), want %s and a hint", address, err, hint.Of(err), want)
		}
	}
	l.Close()
	if err := f.Check(used); err != nil {
		t.Error(err)
	}
	for address, want := range map[string]bool{
		"127.0.0.1:1": false, "localhost:1": false, "[::1]:1": false, "0.0.0.0:1": true, "[::]:1": true,
		"10.0.0.1:1": true,
	} {
		if got := Public(address); got != want {
			t.Errorf("Public(%s) is %v", address, got)
		}
	}
}
