package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/command/fetch"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newFetch() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fetch cuda|nvrtc|nccl",
		Short: "Fetch the libraries that a GPU needs",
		Long: `Fetches ONNX Runtime with CUDA (202 MB) and those of CUDA's libraries that the dynamic loader
does not find (up to 1.2 GB), by pinned hashes. It needs Python with pip; training does not. A run
finds the libraries in the default folder; nothing has to be built again. The NVIDIA driver is not
included. "nvrtc" fetches only CUDA's compiler, and "nccl" only NCCL (196 MB), which sums between
GPUs: "cuda" fetches it, too, if the machine has several GPUs.`,
		Example: `xtts-host fetch cuda
xtts-host fetch cuda --dir /opt/xtts/lib`,
		ValidArgs: []string{fetch.All, fetch.NVRTC, fetch.NCCL},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(cmd.ValidArgs, args[0]) {
				return exit.Usage(fmt.Errorf("fetch takes one of: %s", strings.Join(cmd.ValidArgs, ", ")),
					hint.Command("fetch cuda fetches all that this machine needs"))
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
		return fetch.Run(cmd.Context(), os.Stdout, fetch.Request{Folder: *dir, What: args[0]})
	}
	return cmd
}
