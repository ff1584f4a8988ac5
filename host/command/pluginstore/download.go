package pluginstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// downloader fetches files over https, within limits.
type downloader struct {
	client *http.Client
	stall  time.Duration // the longest time without a byte
	whole  time.Duration // the longest time of one file
}

const maxRedirects = 5

// newDownloader returns a downloader that trusts the authorities of this machine.
func newDownloader() *downloader {
	return &downloader{
		client: &http.Client{Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext, TLSHandshakeTimeout: 30 * time.Second,
			DisableCompression: true, // the bytes of a file are those that its hash is of
			ForceAttemptHTTP2:  true, DisableKeepAlives: true,
		}, CheckRedirect: checkRedirect},
		stall: time.Minute, whole: time.Hour,
	}
}

// checkRedirect follows a few redirects, and none that leaves https.
func checkRedirect(next *http.Request, before []*http.Request) error {
	if len(before) > maxRedirects {
		return hint.Errorf("name the address at the end of the redirects", "more than %d redirects", maxRedirects)
	}
	if next.URL.Scheme != "https" {
		return hint.Errorf("ask who keeps the address for one that stays with https",
			"it leads on to %s, which is not https", next.URL.Redacted())
	}
	return nil
}

// checkAddress refuses what is not an https address.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return hint.Errorf("name an address that begins with https://",
			"%s is not an https address: others could change on the way what comes from it", address)
	}
	if u.User != nil {
		return hint.Errorf("leave the password out of it", "%s has a user or a password in it", u.Redacted())
	}
	return nil
}

// errNotThere means that the server has no file of that name.
var errNotThere = errors.New("the server has no such file")

// errStalled means that the server sends too slowly.
var errStalled = errors.New("the server has stopped sending")

// fetch writes the file at an address, of at most limit bytes.
func (d *downloader) fetch(ctx context.Context, address string, limit int64, to io.Writer) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	whole, end := context.WithTimeoutCause(ctx, d.whole, errStalled)
	defer end()
	alive, stop := context.WithCancelCause(whole)
	defer stop(nil)
	stalled := time.AfterFunc(d.stall, func() { stop(errStalled) })
	defer stalled.Stop()
	err := d.answer(alive, address, limit, to, func() { stalled.Reset(d.stall) })
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(context.Cause(alive), errStalled) {
		err = errStalled
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the address, which follows
	}
	if advice := hint.Of(err); advice == "" {
		return hint.Errorf("try it again later, or download the file by other means and name it", "%s: %w", address,
			err)
	}
	return fmt.Errorf("%s: %w", address, err)
}

// answer reads one answer. came is called whenever bytes have come.
func (d *downloader) answer(ctx context.Context, address string, limit int64, to io.Writer, came func()) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := d.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone:
		return hint.Errorf("compare the address with that of its author", "%w", errNotThere)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("the server answers %s", answer.Status)
	case answer.ContentLength > limit:
		return tooLong(limit)
	}
	n, err := io.Copy(to, io.TeeReader(io.LimitReader(answer.Body, limit+1), ticks(came)))
	if err == nil && n > limit {
		return tooLong(limit)
	}
	return err
}

func tooLong(limit int64) error {
	return hint.Errorf("compare the address with that of its author", "the server sends more than %s, the limit",
		units.Size(limit))
}

// ticks calls a function for each write.
type ticks func()

func (t ticks) Write(p []byte) (int, error) {
	t()
	return len(p), nil
}

// small returns a file of at most limit bytes.
func (d *downloader) small(ctx context.Context, address string, limit int64) ([]byte, error) {
	var text bytes.Buffer
	err := d.fetch(ctx, address, limit, &text)
	return text.Bytes(), err
}
