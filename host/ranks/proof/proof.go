// Package proof shows that the two sides of a connection know a secret, without sending it. Each side sends a nonce, a
// number that was never used before, and then the proof of its name, of both nonces and of what it claims. So neither
// can use an answer of another connection, or the answer of the other side.
package proof

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"
)

// The bytes of a nonce and of a proof.
const (
	NonceBytes = 32
	Bytes      = sha256.Size
)

// Of strangers, who connect and do not know the secret.
const (
	Patience     = 5 * time.Second // for each part of the handshake
	MaxStrangers = 64              // connections that may try at the same time
)

// ErrStranger refuses who does not know the secret.
var ErrStranger = errors.New("it does not know the secret of the run")

// Nonce returns a number that was never used before.
func Nonce() []byte {
	n := make([]byte, NonceBytes)
	rand.Read(n) // never fails
	return n
}

// Of returns what shows that a side knows the secret: the HMAC-SHA256 of its name, the nonce of who leads, that of the
// other, and what the other claims to be.
func Of(secret, side string, lead, other, claims []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	for _, part := range [][]byte{[]byte(side), lead, other, claims} {
		var size [4]byte
		binary.LittleEndian.PutUint32(size[:], uint32(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return h.Sum(nil)
}

// Equal compares two proofs in constant time.
func Equal(a, b []byte) bool { return hmac.Equal(a, b) }
