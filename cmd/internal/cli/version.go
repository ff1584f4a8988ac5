package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Long: "Prints the version of the program.", Args: noArguments,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
			return json.NewEncoder(os.Stdout).Encode(map[string]string{
				"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
			})
		}
		_, err := fmt.Println("xtts-host", version())
		return err
	}
	return cmd
}

// release is set by scripts/build.sh: a release is named by its tag, and contains nothing that depends on the checkout.
var release string

// version is that of a release, the module's version, or the commit that was built.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
