package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// inPipeline gives the error about a part of an entry of the pipeline the form of those of CheckPipeline, with the
// names of the entry and of the member, and a hint. It returns other errors as they are.
func inPipeline(doc any, e *invalidError) *invalidError {
	var names []string
	rest := e.place
	for len(rest) >= 2 && (len(names) == 0 && rest[0] == "pipeline" || len(names) == 1 && isGroup(rest[0])) {
		at := rest[1]
		if doc = member(member(doc, rest[0]), at); doc == nil {
			return e
		}
		name := fmt.Sprintf("%s[%s]", rest[0], at)
		if called, ok := member(doc, "name").(string); ok {
			name += " (" + called + ")"
		}
		names, rest = append(names, name), rest[2:]
	}
	if len(names) == 0 {
		return e
	}
	e.where = strings.Join(names, ": ")
	if len(rest) > 0 {
		e.where += ": " + strings.Join(rest, ".")
	}
	switch {
	case len(rest) == 0 && e.unknown != "":
		e.hint = entryHint(e.unknown)
	case slices.Equal(rest, []string{"p"}):
		e.hint = percentHint(member(doc, "p"))
	}
	return e
}

func isGroup(key string) bool { return key == "one_of" || key == "some_of" }

// member returns the part of an object or a list with a key, nil if there is none.
func member(doc any, key string) any {
	switch doc := doc.(type) {
	case map[string]any:
		return doc[key]
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(doc) {
			return doc[i]
		}
	}
	return nil
}

// synonyms are names that other programs have for keys of an entry.
var synonyms = map[string]string{
	"prob": "p", "proba": "p", "probability": "p", "chance": "p", "params": "config", "parameters": "config",
	"args": "config", "kwargs": "config", "type": "stage", "id": "name",
}

// entryHint names the key of an entry of the pipeline that is meant, or all of them.
func entryHint(typed string) string {
	var keys []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[StageInstance]()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	if key, ok := synonyms[strings.ToLower(typed)]; ok {
		return "did you mean " + key + "?"
	}
	return cmp.Or(hint.DidYouMean(typed, keys), "an entry may have "+strings.Join(keys, ", "))
}

// percentHint says how to write a probability that is something else in a document, such as "30%".
func percentHint(p any) string {
	text, _ := p.(string)
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err == nil && percent && v >= 0 && v <= 100:
		return fmt.Sprintf("for %g percent, write %g", v, v/100)
	case err == nil && !percent && v >= 0 && v <= 1:
		return fmt.Sprintf("write %g without quotes", v)
	}
	return "write a number, 0.3 for 30 percent, or pairs such as [[0, 0], [5000, 0.5]]"
}
