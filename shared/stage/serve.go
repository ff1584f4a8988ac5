package stage

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// Serve runs the plugin until the host ends it. It never returns, and main needs no other call. Do not write to the
// standard output before Serve, because the first line there is the handshake. Writing to it afterwards is harmless,
// but prefer Config.Log, which has levels and fields.
func Serve(p Plugin) {
	os.Exit(serve(p))
}

func serve(p Plugin) int {
	if os.Getenv(Handshake.MagicCookieKey) != Handshake.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "error: %s %s is a plugin: xtts-host starts it\n", p.ID, p.Version)
		fmt.Fprintln(os.Stderr, "hint: put its folder into a folder of plugins, and name that one with --plugins")
		return 1
	}
	stderr := os.Stderr // go-plugin replaces the variable
	log := newLogger(stderr)
	fail := func(err error) int {
		log.Error("cannot serve", "error", err)
		return 1
	}
	if err := watchLifeline(); err != nil {
		return fail(err)
	}
	if err := redirectStdout(); err != nil {
		return fail(err)
	}
	unix.CloseOnExec(RingFD)
	s, err := NewServer(p, os.NewFile(RingFD, "ring"), log)
	if err != nil {
		return fail(err)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake,
		VersionedPlugins: sets(s),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage))...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: stderr, JSONFormat: true}),
	})
	return 0
}

// watchLifeline exits the process when the host's end of the lifeline is closed: by the host, or by the kernel after
// the host was killed. PR_SET_PDEATHSIG would not be sufficient: the kernel sends that signal when the thread that
// started this process ends (prctl(2)). The goroutine lives as long as the process.
func watchLifeline() error {
	var st unix.Stat_t
	if err := unix.Fstat(LifelineFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return fmt.Errorf("descriptor %d is not the lifeline: the host must give the read end of a pipe", LifelineFD)
	}
	unix.CloseOnExec(LifelineFD)
	f := os.NewFile(LifelineFD, "lifeline")
	go func() {
		_, _ = io.Copy(io.Discard, f) // until end of file; an error also ends the watch and the process
		os.Exit(0)
	}()
	return nil
}

// redirectStdout reserves the real standard output for the handshake line: descriptor 1 becomes a copy of descriptor 2,
// so a native library that prints to stdout cannot break the start.
func redirectStdout() error {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, LifelineFD+1)
	if err != nil {
		return fmt.Errorf("copy the standard output: %w", err)
	}
	if err := unix.Dup3(2, 1, 0); err != nil {
		return fmt.Errorf("redirect the standard output: %w", err)
	}
	os.Stdout = os.NewFile(uintptr(fd), "stdout")
	return nil
}

// newLogger writes log entries in the format of docs/plugin-protocol.md.
func newLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hclogAttr}))
}

// hclogAttr renames slog's built-in keys to those of hclog's JSON.
func hclogAttr(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		if a.Value.Kind() == slog.KindTime {
			return slog.String("@timestamp", a.Value.Time().Format(hclog.TimeFormatJSON))
		}
	case slog.MessageKey:
		return slog.String("@message", a.Value.String())
	case slog.LevelKey:
		if l, ok := a.Value.Any().(slog.Level); ok {
			return slog.String("@level", levelName(l))
		}
	}
	return a
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}
