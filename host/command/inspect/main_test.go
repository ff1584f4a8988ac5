package inspect

import (
	"os"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }
