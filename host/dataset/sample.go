package dataset

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed sample/sample.zip
var sampleZip []byte

// Sample unpacks the embedded data set into a cache folder and returns its subfolder: 24 clips for training and 6
// held-out clips of two synthetic speakers, in the layout of LJSpeech. An existing folder is verified by checksums and
// reused; a folder that differs is replaced. Several processes may call it at the same time.
func Sample(cacheDir string) (string, error) {
	sum := sha256.Sum256(sampleZip)
	dir, err := unpack(sampleZip, filepath.Join(cacheDir, "sample-"+hex.EncodeToString(sum[:8])))
	if err != nil {
		return "", fmt.Errorf("sample data set: %w", err)
	}
	return dir, nil
}

func unpack(archive []byte, dir string) (string, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return "", err
	}
	if same(z, dir) {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".*.tmp")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	fresh, old := filepath.Join(temp, "new"), filepath.Join(temp, "old")
	if err := os.CopyFS(fresh, z); err != nil {
		return "", err
	}
	if same(z, dir) { // another process was faster
		return dir, nil
	}
	// A folder cannot be renamed over a folder with files, so the old one is moved away first. If another process does
	// the same, the last rename decides.
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil && !same(z, dir) {
		return "", err
	}
	return dir, nil
}

// same reports whether dir holds the archive's files, by their sizes and the checksums in the archive, without
// unpacking.
func same(z *zip.Reader, dir string) bool {
	for _, f := range z.File {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil || uint64(len(got)) != f.UncompressedSize64 || crc32.ChecksumIEEE(got) != f.CRC32 {
			return false
		}
	}
	return true
}
