package main

import "strings"

// kinds are the SPDX identifiers of licenses, with sentences that are in no other license of the list. The first match
// counts, so BSD-3-Clause comes before BSD-2-Clause, whose sentences it contains.
var kinds = []struct{ id, sentences string }{
	{"Apache-2.0", "Apache License Version 2.0, January 2004"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"BSD-3-Clause", "Redistribution and use in source and binary forms|to endorse or promote products derived from " +
		"this software without specific prior written permission"},
	// libcap's, of its author's wording; the GPL that its text offers instead is not chosen.
	{"BSD-3-Clause", "Redistribution and use in source and binary forms of libcap/psx|to endorse or promote products " +
		"derived from this software without their specific prior written permission"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms|this list of conditions and the following " +
		"disclaimer in the documentation"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy|THE SOFTWARE IS PROVIDED " +
		"\"AS IS\""},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is " +
		"hereby granted"},
	{"Unlicense", "This is free and unencumbered software released into the public domain"},
}

// kind returns the identifier of a license, or nothing for a text that is none of kinds, such as a patent grant.
func kind(content string) string {
	words := strings.ToLower(strings.Join(strings.Fields(content), " "))
	for _, k := range kinds {
		all := true
		for sentence := range strings.SplitSeq(k.sentences, "|") {
			all = all && strings.Contains(words, strings.ToLower(sentence))
		}
		if all {
			return k.id
		}
	}
	return ""
}
