// Command notices writes THIRD_PARTY_NOTICES.md: every Go module that is linked into xtts-host or a first-party plugin,
// with its version, its license and the license's text, and what a build fetches in addition.
//
//	notices           writes the file
//	notices -check    fails if the file is not what it would write
//
// It asks the go command for the packages of each supported build, so a change of go.mod or of an import changes the
// file. A module without a license file, or with a license that it does not know, is an error.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

const file = "THIRD_PARTY_NOTICES.md"

func main() {
	check := flag.Bool("check", false, "compare the file instead of writing it")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	modules, err := linked()
	if err != nil {
		return err
	}
	text := document(modules)
	if !check {
		return os.WriteFile(file, text, 0o644)
	}
	old, err := os.ReadFile(file)
	if err == nil && !bytes.Equal(old, text) {
		err = errors.New(file + " does not list the modules that are linked now; write it again with: make notices")
	}
	return err
}
