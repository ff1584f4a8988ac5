package pluginstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// signer is who has signed an archive.
type signer struct {
	key   signature.Key
	is    bool // there is a signature, and it is right
	first bool // the key was not known before
}

// signer checks the signature of an archive by the key that is known for the plugin. One that is not known yet comes
// from --key, the index, or the signature itself, in this order.
func (o *InstallOptions) signer(a *arrived, keys *signature.Keys) (signer, error) {
	name := a.content.Index.Name
	known, isKnown := keys.Of(name)
	given, err := givenKey(o.Key)
	if err != nil {
		return signer{}, err
	}
	if a.origin.Signature == nil {
		const beside = "get the file of the signature, and put it beside the archive: its name ends with .minisig"
		switch {
		case isKnown:
			return signer{}, hint.Errorf(beside, "plugin %s is known with the key %s, and this archive is not signed",
				name, known)
		case given != nil || a.source.signer != nil || o.RequireSignatures:
			return signer{}, hint.Errorf(beside, "plugin %s is not signed", name)
		}
		return signer{}, nil
	}
	s := signer{is: true, first: !isKnown, key: known}
	for _, other := range []*signature.Key{given, a.source.signer} {
		switch {
		case other == nil:
		case isKnown && !other.Equal(known):
			return signer{}, keys.OtherKey(name)
		case given != nil && !other.Equal(*given):
			return signer{}, hint.Errorf("ask the author which key is right", "the index says that the key of %s is %s",
				name, other)
		default:
			s.key = *other
		}
	}
	stated, states := signature.Stated(a.origin.Signature)
	if !isKnown && given == nil && a.source.signer == nil {
		if !states {
			return signer{}, hint.Errorf("give the author's public key: --key KEY, or the file of it",
				"the signature of %s does not say by which key it can be checked", name)
		}
		s.key = stated
	}
	err = a.verify(s.key)
	if errors.Is(err, signature.ErrNotSigned) {
		if isKnown && states && !stated.Equal(known) {
			return signer{}, keys.OtherKey(name)
		}
		err = hint.Errorf("get the archive and its signature again from the author; do not use them as they are",
			"%s: %w", a.place+signature.Suffix, err)
	}
	return s, err
}

// givenKey is the key of --key: a key, or the file of one. It is nil without the flag.
func givenKey(text string) (*signature.Key, error) {
	if text == "" {
		return nil, nil
	}
	key, err := signature.ParseKey(text)
	if err != nil && !strings.HasPrefix(text, "RW") {
		data, rerr := files.Read(text, signature.MaxText)
		if rerr != nil {
			return nil, exit.Advise(fmt.Errorf("--key: %w", rerr),
				"name the author's .pub file, or give the key itself")
		}
		key, err = signature.ParseKey(string(data))
	}
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	return &key, nil
}
