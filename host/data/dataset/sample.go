package dataset

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/files"
)

//go:embed sample/sample.zip
var sampleZip []byte

// Sample unpacks the embedded data set into a cache folder and returns its subfolder: 24 clips for training and 6
// held-out clips of two synthetic speakers, in the layout of LJSpeech. An existing folder is verified by checksums and
// reused; a folder that differs is replaced. Several processes may call it at the same time.
func Sample(cacheDir string) (string, error) {
	sum := sha256.Sum256(sampleZip)
	dir := files.In(cacheDir, "sample-"+hex.EncodeToString(sum[:8]))
	z, err := zip.NewReader(bytes.NewReader(sampleZip), int64(len(sampleZip)))
	if err == nil {
		err = files.Unpack(dir, z, func(dir string) bool { return same(z, dir) })
	}
	if err != nil {
		return "", fmt.Errorf("sample data set: %w", err)
	}
	return dir.String(), nil
}

// maxSample bounds a file of the sample, in bytes.
const maxSample = 64 << 20

// same reports whether dir holds the archive's files, by their sizes and the checksums in the archive, without
// unpacking.
func same(z *zip.Reader, dir string) bool {
	for _, f := range z.File {
		got, err := files.Read(filepath.Join(dir, filepath.FromSlash(f.Name)), maxSample)
		if err != nil || uint64(len(got)) != f.UncompressedSize64 || crc32.ChecksumIEEE(got) != f.CRC32 {
			return false
		}
	}
	return true
}
