package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// secret makes a key.
func secret(t *testing.T) Secret {
	t.Helper()
	s, _, err := NewSecret("")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sumOf is the hex SHA-256.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func nothing() error { return nil }

// TestKeysFile: a person can write the file. Pin keeps what is there, and never changes a key.
func TestKeysFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "xtts-host", "plugin-keys")
	mine, other := secret(t).Public(), secret(t).Public()
	k, err := loadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Pin("echo", mine, nothing); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own := string(text) + "# from a talk\n  noise   " + other.String() // no line feed at its end
	if err := os.WriteFile(file, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	if k, err = loadKeys(file); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.Pin("rooms", mine, nothing), k.Pin("echo", mine, nothing)); err != nil {
		t.Error(err)
	}
	if err := k.Pin("echo", other, nothing); err == nil || !strings.Contains(hint.Of(err), file) {
		t.Errorf("another key took the place of the first: %v", err)
	}
	if text, err = os.ReadFile(file); err != nil || string(text) != own+"\nrooms "+mine.String()+"\n" {
		t.Errorf("%v\n%s", err, text)
	}
	for line, want := range map[string]string{
		"echo":                              "is not a name and a key",
		"echo RWx":                          "is no public key",
		"echo " + mine.String() + " more":   "is not a name and a key",
		"rooms " + other.String():           "plugin rooms has a line already",
		"echo " + mine.String()[:55] + "!":  "is no public key",
		"echo " + strings.Repeat("RWQA", 9): "is no public key",
	} {
		lines := "rooms " + mine.String() + "\n" + line + "\n"
		if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := loadKeys(file); err == nil || !strings.Contains(err.Error(), file+":2: ") ||
			!strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// TestVerify: a signature is of these bytes and this key.
func TestVerify(t *testing.T) {
	s, data := secret(t), []byte("some bytes")
	text, err := Sign(bytes.NewReader(data), s, "comment")
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(bytes.NewReader(data), text, s.Public(), sumOf(data)); err != nil {
		t.Error(err)
	}
	if key, ok := Stated(text); !ok || !key.Equal(s.Public()) {
		t.Errorf("it states %v, %v", key, ok)
	}
	if err := Verify(bytes.NewReader(data[1:]), text, s.Public(), sumOf(data[1:])); !errors.Is(err, ErrNotSigned) {
		t.Error(err)
	}
	if err := Verify(bytes.NewReader(data), text, secret(t).Public(), sumOf(data)); !errors.Is(err, ErrNotSigned) {
		t.Error(err)
	}
	if err := Verify(bytes.NewReader(data), text, s.Public(), sumOf([]byte("what was checked"))); err == nil {
		t.Error("the signature of bytes that are not those that were checked was taken")
	}
	for i := range text {
		bad := bytes.Clone(text)
		bad[i] ^= 1
		comment := i >= len("untrusted comment: ") && i < bytes.IndexByte(text, '\n')
		if bytes.HasPrefix(text[i+1:], []byte("=")) {
			continue // its last bits mean nothing in base64
		}
		if err := Verify(bytes.NewReader(data), bad, s.Public(), sumOf(data)); err == nil && !comment {
			t.Errorf("a signature with another byte %d was taken", i)
		}
	}
}
