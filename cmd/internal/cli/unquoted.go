package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// typedKey is the key of the words of the command line in the context of a command.
type typedKey struct{}

func withTyped(ctx context.Context, words []string) context.Context {
	return context.WithValue(ctx, typedKey{}, words)
}

// unquoted is the advice for an argument that a shell has split off the word before it, since a value with spaces was
// not quoted. It is "" where nothing says so: the word before has to be the value of a flag that takes a path or a
// text, or together they have to name a file.
func unquoted(cmd *cobra.Command, argument string) string {
	var words []string
	if ctx := cmd.Context(); ctx != nil {
		words, _ = ctx.Value(typedKey{}).([]string)
	}
	at := slices.Index(words, argument)
	if at < 1 {
		return ""
	}
	end := at + 1
	for end < len(words) && !strings.HasPrefix(words[end], "-") {
		end++
	}
	before, rest := words[at-1], " "+strings.Join(words[at:end], " ")
	name, value, assigned := strings.Cut(before, "=")
	if !assigned {
		if value = before; at > 1 {
			name = words[at-2]
		}
	}
	if _, err := os.Stat(value + rest); err == nil && !strings.HasPrefix(name, "--") {
		return "quote a path with spaces: " + hint.Path(value+rest)
	}
	f := cmd.Flags().Lookup(strings.TrimPrefix(name, "--"))
	if f == nil || !strings.HasPrefix(name, "--") ||
		!slices.Contains([]string{"file", "folder", "path", "text"}, usedName(f)) {
		return ""
	}
	if other := cmd.Flags().Lookup(strings.TrimPrefix(value, "--")); other != nil && strings.HasPrefix(value, "--") {
		return fmt.Sprintf("give --%s a value: the word after it is %s", f.Name, value)
	}
	return "quote a value with spaces: --" + f.Name + " " + hint.Path(value+rest)
}
