package nvrtc

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	loader "github.com/xtts-host/xtts-host/gpu/library"
)

// Options are those of Compiler.Compile.
type Options struct {
	// Capability is the compute capability of the card times ten: 90 is sm_90a.
	Capability int
	// Flags are more options of NVRTC, such as "-use_fast_math".
	Flags []string
	// Cache is the folder of what has been compiled before. Empty means none.
	Cache string
}

// Compiled is the result of Compiler.Compile.
type Compiled struct {
	// Images has an image for each source: a cubin, or PTX for a card that is newer than NVRTC. It is nil for a source
	// that the compiler refuses.
	Images [][]byte
	// Refused has the compiler's reason for each source without an image, and nil for the others.
	Refused []error
	// Cached is the number of programs that the cache had, and New of those that were compiled. Equal sources are one
	// program.
	Cached, New int
	// CacheError says why the cache does not have them all now. The images are complete nevertheless.
	CacheError error
}

// Compile compiles sources in CUDA C++, each of them as a program, in as many threads as GOMAXPROCS allows. A program
// includes no header: NVRTC's own declarations are available without the runtime API, textures and launches from the
// GPU (-minimal), in C++17.
//
// The cache depends on NVRTC's version, the options and the source. Any number of processes may use one folder.
// When ctx ends, Compile returns after the programs that are being compiled.
func (c *Compiler) Compile(ctx context.Context, o Options, sources []string) (Compiled, error) {
	arch, ptx, err := c.target(o.Capability)
	if err != nil {
		return Compiled{}, err
	}
	options := append([]string{"-arch=" + arch, "-std=c++17", "-minimal", "-no-cache"}, o.Flags...)
	programs := map[string]*program{} // by key
	keys := make([]string, len(sources))
	store := &cache{folder: o.Cache}
	defer loader.KeepHandlers()()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, source := range sources {
		keys[i] = key(c.Version(), options, source)
		if programs[keys[i]] != nil {
			continue
		}
		p := &program{}
		programs[keys[i]] = p
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if p.image = store.load(keys[i]); p.image != nil {
				p.cached = true
				return nil
			}
			image, log, err := c.compile(source, options, ptx)
			if err != nil {
				p.refused = fmt.Errorf("compile for %s: %w%s", arch, err, firstError(log))
				return nil
			}
			p.image = image
			store.add(keys[i], image)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Compiled{}, err
	}
	out := Compiled{CacheError: store.close()}
	for _, k := range keys {
		out.Images, out.Refused = append(out.Images, programs[k].image), append(out.Refused, programs[k].refused)
	}
	for _, p := range programs {
		switch {
		case p.cached:
			out.Cached++
		case p.refused == nil:
			out.New++
		}
	}
	return out, nil
}

// program is the result for one source.
type program struct {
	image   []byte
	refused error
	cached  bool
}

// firstError returns the first error in a log, with the line of the source that the compiler prints below it, after a
// colon.
func firstError(log string) string {
	lines := strings.Split(log, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "error:") {
			continue
		}
		if i+1 < len(lines) {
			line += ": " + strings.TrimSpace(lines[i+1])
		}
		return ": " + line
	}
	if log == "" {
		return ""
	}
	return ": " + lines[0]
}
