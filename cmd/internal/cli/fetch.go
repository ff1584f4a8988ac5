package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/command/fetch"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newFetch() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fetch cuda|nvrtc",
		Short: "Fetch the libraries that a GPU needs",
		Long: `Fetches ONNX Runtime with CUDA (202 MB) and those of CUDA's libraries that the dynamic loader
does not find (up to 1.2 GB), by pinned hashes, with pip. A run finds them in the default folder;
nothing has to be built again. The NVIDIA driver is not included. "nvrtc" fetches only CUDA's
compiler.`,
		Example: `xtts-host fetch cuda
xtts-host fetch cuda --dir /opt/xtts/lib`,
		ValidArgs: []string{"cuda", "nvrtc"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] != "cuda" && args[0] != "nvrtc" {
				return exit.Usage(errors.New("fetch takes one of: cuda, nvrtc"), hint.Command("fetch cuda fetches all"))
			}
			return nil
		},
	}
	dir := cmd.Flags().String("dir", "",
		"folder of the libraries, to be named with --ort-lib FILE (default ~/.cache/xtts-host/"+ort.GPUFolder+")")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *dir == "" {
			cache, err := os.UserCacheDir()
			if err != nil {
				return exit.Usage(err, "name a folder with --dir")
			}
			*dir = filepath.Join(cache, "xtts-host", ort.GPUFolder)
		}
		return fetch.Run(cmd.Context(), os.Stdout, fetch.Request{Folder: *dir, NVRTC: args[0] == "nvrtc"})
	}
	return cmd
}
