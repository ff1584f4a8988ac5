// Gosdk writes a folder from which Go takes the module shared, the SDK for plugins in Go, as from a proxy on the
// network (go help goproxy). make go-sdk writes it into .cache/go-sdk, and a plugin outside of the checkout takes it
// so:
//
//	GOPROXY=file://$PWD/.cache/go-sdk,https://proxy.golang.org,direct GONOSUMDB=github.com/xtts-host/xtts-host/shared \
//		go get github.com/xtts-host/xtts-host/shared@VERSION
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const path = "github.com/xtts-host/xtts-host/shared"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gosdk MODULE FOLDER")
		os.Exit(2)
	}
	version, err := write(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(version)
}

// write writes the files of a proxy for the module in a folder, and returns the version that it has there: the newest
// commit of the checkout as a pseudo-version (https://go.dev/ref/mod#pseudo-versions), until there is a tag.
func write(from, to string) (string, error) {
	commit, err := exec.Command("git", "-C", from, "log", "-1", "--format=%ct %H").Output()
	if err != nil {
		return "", fmt.Errorf("git log: %w", err)
	}
	var seconds int64
	var hash string
	if _, err := fmt.Sscan(string(commit), &seconds, &hash); err != nil {
		return "", fmt.Errorf("git log: %w", err)
	}
	when := time.Unix(seconds, 0).UTC()
	version := module.PseudoVersion("v0", "", when, hash[:12])
	folder := filepath.Join(to, filepath.FromSlash(path), "@v")
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, when})
	if err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err != nil {
		return "", err
	}
	for name, data := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
			return "", err
		}
	}
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return "", err
	}
	defer archive.Close()
	if err := zip.CreateFromDir(archive, module.Version{Path: path, Version: version}, from); err != nil {
		return "", fmt.Errorf("%s: %w", strings.TrimSuffix(from, "/"), err)
	}
	return version, archive.Close()
}
