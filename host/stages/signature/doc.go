// Package signature signs archives of plugins and checks who signed them, in the format of minisign: Ed25519 over the
// BLAKE2b hash of the file, in a file beside it, whose name ends with .minisig. Signatures of minisign -S are taken as
// well.
//
//	text, err := signature.Sign(archive, secret, "room-echo 1.0.0")
//	err = signature.Verify(archive, text, secret.Public(), sum)
//
// A signature shows that whoever has the secret key has signed these bytes. Whose key that is, a user decides: [Keys]
// has the key of each plugin, as of its first installation, in a file that a person can read and change.
package signature
