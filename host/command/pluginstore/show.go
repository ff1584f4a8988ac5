package pluginstore

import (
	"cmp"
	"io"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
)

// show prints what an archive is and what it asks for, and what is lost in the folder that it replaces.
func show(out io.Writer, a *arrived, s signer, keysFile string, lost []string) {
	ix := a.content.Index
	line := func(name, format string, args ...any) {
		visible.Fprintf(out, "  %-10s "+format+"\n", append([]any{name}, args...)...)
	}
	visible.Fprintf(out, "%s %s: %s\n", ix.Name, ix.Version, cmp.Or(a.content.Manifest.Description, "no description"))
	line("from", "%s (%s)", a.place, size(a.content.Size))
	line("SHA-256", "%s", a.content.Sum)
	line("files", "%s, %s", units.Count(len(ix.Files), "file"), size(ix.Bytes()))
	line("platforms", "%s", strings.Join(ix.Platforms, ", "))
	line("licence", "%s", cmp.Or(ix.License, "not stated"))
	if ix.Homepage != "" {
		line("homepage", "%s", ix.Homepage)
	}
	line("GPU", "%s", ix.Asks.GPU)
	line("network", "%s", map[bool]string{true: "asks for it", false: "none"}[ix.Asks.Network])
	line("folders", "%s", cmp.Or(strings.Join(ix.Asks.Folders, ", "), "none"))
	if len(ix.Asks.Data) > 0 {
		line("data", "%s: folders that a run names with --plugin-data", strings.Join(ix.Asks.Data, ", "))
	}
	if ix.Environment != "" {
		line("Python", "needs an environment, which is made from %s", ix.Environment)
		if a.content.Python != "" {
			line("", "for %s", a.content.Python)
		}
	}
	switch {
	case !s.is:
		line("signed", "no: nothing shows who has made it")
	case s.first:
		line("signed", "by %s", s.key)
		line("", "The key is new. Compare it with the one that the author publishes elsewhere.")
		line("", "It is kept, and another key is refused from then on: %s", keysFile)
	default:
		line("signed", "by %s, the key that is known for it", s.key)
	}
	const most = 10
	for i, what := range lost {
		if i == most {
			line("", "and %d more", len(lost)-most)
			break
		}
		line(map[bool]string{true: "removes"}[i == 0], "%s", what)
	}
}

// size writes a number of bytes, exactly if it is small.
func size(n int64) string {
	if n < 1<<20 {
		return units.Thousands(n) + " bytes"
	}
	return units.Size(n)
}
