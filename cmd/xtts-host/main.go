// Command xtts-host trains XTTS text-to-speech models: it runs exported training graphs through ONNX Runtime while
// plugins prepare the next batches. README.md says how to use it; --help lists the commands and flags.
package main

import (
	"os"

	"github.com/xtts-host/xtts-host/cmd/internal/cli"
	_ "github.com/xtts-host/xtts-host/host/settings/limits/early"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func main() {
	hint.CalledAs(os.Args[0])
	os.Exit(cli.Run(os.Args[1:]))
}
