package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/release"
)

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Long: "Prints the version of the program.", Args: noArguments,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
			return json.NewEncoder(os.Stdout).Encode(map[string]string{
				"version": release.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
			})
		}
		_, err := fmt.Println("xtts-host", release.Version())
		return err
	}
	return cmd
}
