// Command xtts-docs writes the manual pages of xtts-host into a folder, from the same table as its help:
//
//	go run ./cmd/xtts-docs .cache/man && man -l .cache/man/xtts-host.1
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra/doc"

	"github.com/xtts-host/xtts-host/cmd/internal/cli"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: xtts-docs FOLDER")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// write makes a page for each command, and says how to read them.
func write(out io.Writer, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	root := cli.New()
	root.DisableAutoGenTag = true // no date: the same sources give the same pages
	header := &doc.GenManHeader{Title: "XTTS-HOST", Section: "1", Source: "xtts-host", Manual: "xtts-host manual"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "wrote %d manual pages to %s: man -l %s\n", len(pages), dir,
		hint.Word(filepath.Join(dir, "xtts-host.1")))
	return err
}
