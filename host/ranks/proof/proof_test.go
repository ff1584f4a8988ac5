package proof

import "testing"

// TestOf: a proof depends on the secret, the side, both nonces and the claims, and where one ends and the next begins.
func TestOf(t *testing.T) {
	const secret = "the secret of a test"
	a, b := Nonce(), Nonce()
	if len(a) != NonceBytes || Equal(a, b) {
		t.Fatalf("nonces %x and %x", a, b)
	}
	own := Of(secret, "side", a, b, []byte("claims"))
	if len(own) != Bytes || !Equal(own, Of(secret, "side", a, b, []byte("claims"))) {
		t.Errorf("%x is not always the same", own)
	}
	for what, other := range map[string][]byte{
		"another secret": Of(secret+".", "side", a, b, []byte("claims")),
		"another side":   Of(secret, "sida", a, b, []byte("claims")),
		"other nonces":   Of(secret, "side", b, a, []byte("claims")),
		"other claims":   Of(secret, "side", a, b, []byte("claim")),
		"another border": Of(secret, "sid", append([]byte("e"), a...), b, []byte("claims")),
	} {
		if Equal(own, other) {
			t.Errorf("%s gives the same proof", what)
		}
	}
}
