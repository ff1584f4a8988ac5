package page

import (
	"regexp"
	"strings"
)

var tag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$`)

// lang is the language of a text as the attribute of HTML: browsers choose Chinese or Japanese forms of letters by it,
// and screen readers a voice. "" means an unknown one, rather than that of the page.
func lang(name string) string {
	if name = strings.ReplaceAll(name, "_", "-"); tag.MatchString(name) {
		return name
	}
	return ""
}
