package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// maxSchema bounds the size of a plugin's schema after expanding every reference, in objects and arrays.
const maxSchema = 10_000

var errSchemaTooLarge = fmt.Errorf("a schema of more than %d parts after expanding its references", maxSchema)

// checkReferences refuses a schema whose references leave it or expand without bound: twenty definitions that each
// refer to the next one twice would be checked a million times. A schema that refers to itself has no end, so it is
// refused too.
func checkReferences(schema any) error {
	left := maxSchema
	var walk func(node any) error
	walk = func(node any) error {
		if left--; left < 0 {
			return errSchemaTooLarge
		}
		switch node := node.(type) {
		case []any:
			for _, v := range node {
				if err := walk(v); err != nil {
					return err
				}
			}
		case map[string]any:
			for key, v := range node {
				text, isText := v.(string)
				switch {
				case !isText:
					if err := walk(v); err != nil {
						return err
					}
				case key == "$ref":
					target, err := resolve(schema, text)
					if err != nil {
						return err
					}
					if err := walk(target); err != nil {
						return err
					}
				case key == "$id", key == "$dynamicRef", key == "$anchor", key == "$dynamicAnchor":
					return fmt.Errorf("%s is not supported", key)
				}
			}
		}
		return nil
	}
	return walk(schema)
}

// errOutside replaces the error of a library that would otherwise try to read the file.
var errOutside = errors.New("a schema must refer to nothing outside the schema")

// resolve follows a JSON pointer (RFC 6901) in a reference, such as "#/$defs/gain".
func resolve(schema any, ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("$ref %.80q: %w", ref, errOutside)
	}
	at := schema
	if pointer == "" {
		return at, nil
	}
	for _, part := range strings.Split(pointer[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		members, ok := at.(map[string]any)
		if ok {
			at, ok = members[part]
		}
		if !ok {
			return nil, fmt.Errorf("$ref %.80q: %.80q is missing", ref, part)
		}
	}
	return at, nil
}
