package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Suffix follows the name of a file in the name of its signature.
const Suffix = ".minisig"

// MaxText bounds the size in bytes of a signature, and of a file with a key.
const MaxText = 16 << 10

// Key is a public key.
type Key struct{ key minisign.PublicKey }

// String returns the key in base64, as minisign writes it: 56 characters that begin with RW.
func (k Key) String() string { return k.key.String() }

// Equal reports whether two keys are the same.
func (k Key) Equal(other Key) bool { return k.key.Equal(other.key) }

// ParseKey reads a public key: its base64, or the text of a file that minisign wrote.
func ParseKey(text string) (Key, error) {
	var k Key
	if err := k.key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return Key{}, hint.Errorf("take the second line of the author's .pub file: 56 characters that begin with RW",
			"%q is no public key of minisign", text)
	}
	return k, nil
}

// Secret is the key that signs.
type Secret struct{ key minisign.PrivateKey }

// NewSecret makes a key. text is its file: encrypted, unless password is empty.
func NewSecret(password string) (s Secret, text []byte, err error) {
	if _, s.key, err = minisign.GenerateKey(nil); err != nil {
		return Secret{}, nil, err
	}
	if password == "" {
		text, err = s.key.MarshalText()
	} else {
		text, err = minisign.EncryptKey(password, s.key)
	}
	return s, text, err
}

// ParseSecret reads the file of a secret key, also one of minisign -G. It asks for the password if the key has one.
func ParseSecret(text []byte, password func() (string, error)) (s Secret, err error) {
	if !minisign.IsEncrypted(text) {
		if err = s.key.UnmarshalText(text); err != nil {
			err = hint.Errorf("make one: "+hint.Command("plugins key my.key"), "no secret key of minisign")
		}
		return s, err
	}
	word, err := password()
	if err != nil {
		return Secret{}, err
	}
	if s.key, err = minisign.DecryptKey(word, text); err != nil {
		err = hint.Errorf("type the password that the key was made with", "the password is not that of the key")
	}
	return s, err
}

// Public returns the public key of a secret one.
func (s Secret) Public() Key { return Key{s.key.Public().(minisign.PublicKey)} }

// PublicFile returns the text of the file of the public key.
func (s Secret) PublicFile() []byte {
	return fmt.Appendf(nil, "untrusted comment: minisign public key %X\n%s\n", s.Public().key.ID(), s.Public())
}

// states begins the comment in which a signature names the public key that it can be checked with. The comment itself
// is not signed: it proves nothing until the signature fits the key.
const states = "signature of xtts-host, public key "

// Sign signs what it reads. comment is signed, too.
func Sign(in io.Reader, secret Secret, comment string) ([]byte, error) {
	r := minisign.NewReader(in)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return r.SignWithComments(secret.key, comment, states+secret.Public().String()), nil
}

// ErrNotSigned means that a signature is none, or is not one of this key over these bytes.
var ErrNotSigned = errors.New("the signature is not right")

// Verify checks a signature over what it reads, which must have the hex SHA-256 that the caller has checked the content
// of: a file that others can write may have changed since.
func Verify(in io.Reader, text []byte, key Key, sum string) error {
	var s minisign.Signature
	if err := s.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w: it is not in the format of minisign", ErrNotSigned)
	}
	if s.Algorithm != minisign.HashEdDSA {
		return fmt.Errorf("%w: it is in the old format; minisign 0.10 and later write the new one", ErrNotSigned)
	}
	hash := sha256.New()
	r := minisign.NewReader(io.TeeReader(in, hash))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != sum {
		return fmt.Errorf("%w: the file has changed while it was checked", ErrNotSigned)
	}
	if s.KeyID != key.key.ID() {
		return fmt.Errorf("%w: it is of another key than %s", ErrNotSigned, key)
	}
	if !r.Verify(key.key, text) {
		return fmt.Errorf("%w: the file has changed since, or the signature is of another file", ErrNotSigned)
	}
	return nil
}

// Stated returns the public key that a signature says that it is of, if it says so.
func Stated(text []byte) (Key, bool) {
	var s minisign.Signature
	if s.UnmarshalText(text) != nil {
		return Key{}, false
	}
	name, ok := strings.CutPrefix(s.UntrustedComment, states)
	if !ok {
		return Key{}, false
	}
	k, err := ParseKey(name)
	return k, err == nil
}
