// Command xtts-docs writes the manual pages of xtts-host into a folder, from the same table as its help:
//
//	go run ./cmd/xtts-docs .cache/man && man -l .cache/man/xtts-host.1
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra/doc"

	"github.com/xtts-host/xtts-host/cmd/internal/cli"
)

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: xtts-docs FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// write makes a page for each command.
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	root := cli.New()
	root.DisableAutoGenTag = true // no date: the same sources give the same pages
	header := &doc.GenManHeader{Title: "XTTS-HOST", Section: "1", Source: "xtts-host", Manual: "xtts-host manual"}
	return doc.GenManTree(root, header, dir)
}
