package dashboard

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

// guard decides who gets an answer.
type guard struct {
	public bool   // other machines may reach the address
	token  string // "" if none is needed
	cookie string // that has it
	host   string // the name of this machine
	url    string
	pace   pacer
}

func newGuard(at net.Addr, public bool) *guard {
	g := &guard{public: public, url: "http://" + at.String() + "/"}
	_, port, _ := net.SplitHostPort(at.String())
	g.cookie = "xtts-host-" + port // cookies do not know ports
	if host, err := os.Hostname(); err == nil {
		g.host = host
	}
	if public {
		g.token = rand.Text()
		if ip, err := netip.ParseAddr(hostOf(at.String())); err == nil && ip.IsUnspecified() {
			g.url = "http://" + net.JoinHostPort(cmp.Or(ownAddress(), g.host, "127.0.0.1"), port) + "/"
		}
		g.url += "?token=" + g.token
	}
	return g
}

// ownAddress is the address of this machine from which it would reach others, as it may not have a name that they know;
// "" if it has no way to others. Nothing is sent.
func ownAddress() string {
	for _, other := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // addresses for documents: there is nobody
		c, err := net.Dial("udp", other)
		if err != nil {
			continue
		}
		own, ok := c.LocalAddr().(*net.UDPAddr)
		c.Close()
		if ok && !own.IP.IsLoopback() {
			return own.IP.String()
		}
	}
	return ""
}

// policy allows the page what this server serves, and nothing else: no inline script or style, no form, no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// wrap lets only the requests through that the page of this server makes, those at a bounded pace.
func (g *guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		answer := http.NewResponseController(w)
		answer.SetWriteDeadline(time.Now().Add(limit))
		if !g.named(q.Host) {
			http.Error(w, "this server is not known by that name; open the address that it has printed",
				http.StatusMisdirectedRequest)
			return
		}
		if !own(q) {
			http.Error(w, "requests of other pages are refused", http.StatusForbidden)
			return
		}
		if g.token != "" && !g.knows(w, q) {
			return
		}
		if !g.pace.wait(q.Context()) { // only here: who is refused takes no turn from others
			return
		}
		answer.SetWriteDeadline(time.Now().Add(limit))
		next.ServeHTTP(w, q)
	})
}

// named reports whether a Host header names this server. A name of the domain name system could be that of a stranger's
// page, whose address has become that of this machine.
func (g *guard) named(host string) bool {
	name := hostOf(host)
	if strings.EqualFold(name, "localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return g.public || ip.IsLoopback()
	}
	return g.public && g.host != "" && strings.EqualFold(name, g.host)
}

// hostOf is a host without its port and its brackets.
func hostOf(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.Trim(hostPort, "[]")
}

// own reports whether a request may come from the page itself. A link of another page may lead to the page. A request
// that changes something must say that it comes from here.
func own(q *http.Request) bool {
	site, origin := q.Header.Get("Sec-Fetch-Site"), q.Header.Get("Origin")
	if origin != "" && origin != "http://"+q.Host {
		return false
	}
	read := q.Method == http.MethodGet || q.Method == http.MethodHead
	switch site {
	case "same-origin":
		return true
	case "none": // typed
		return read
	case "":
		return read || origin != ""
	}
	return read && q.Header.Get("Sec-Fetch-Mode") == "navigate" && q.Header.Get("Sec-Fetch-Dest") == "document" &&
		(q.URL.Path == "/" || strings.HasPrefix(q.URL.Path, "/runs/"))
}

// knows reports whether the token is in the cookie. A request that has it in the address gets the cookie and the
// address without it.
func (g *guard) knows(w http.ResponseWriter, q *http.Request) bool {
	if c, err := q.Cookie(g.cookie); err == nil && g.right(c.Value) {
		return true
	}
	if q.Method == http.MethodGet && g.right(q.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{
			Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
		to := url.URL{Path: q.URL.Path}
		w.Header().Set("Location", to.EscapedPath())
		w.WriteHeader(http.StatusSeeOther)
		return false
	}
	http.Error(w, "open the address with the token that the program has printed at its start", http.StatusUnauthorized)
	return false
}

// right compares in constant time.
func (g *guard) right(token string) bool {
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(g.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
