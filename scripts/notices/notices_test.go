package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mit = `MIT License

Copyright (c) 2026 Someone

Permission is hereby granted, free of charge, to any person obtaining a
copy of this software ... THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY`

const bsd = `Redistribution and use in source and binary forms, with or without modification, are permitted.
2. reproduce the above copyright notice, this list of conditions and the following
   disclaimer in the documentation.`

func TestKind(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	third := bsd + "\n3. The names may not be used to endorse or promote products derived from\n" +
		"this software without specific prior written permission."
	for content, want := range map[string]string{
		string(apache): "Apache-2.0", mit: "MIT", bsd: "BSD-2-Clause", third: "BSD-3-Clause",
		"Additional IP Rights Grant (Patents)": "", "All rights reserved.": "",
	} {
		if got := kind(content); got != want {
			t.Errorf("kind(%.40q) = %q, want %q", content, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string // names of the texts, or the error
	}{
		{map[string]string{"LICENSE": mit, "a.go": "package a", "license.go": "package a"}, "LICENSE"},
		{
			map[string]string{"LICENSE.md": mit, "PATENTS": "a grant", "used/COPYING": bsd, "unused/LICENSE": bsd},
			"LICENSE.md PATENTS used/COPYING",
		},
		{map[string]string{
			"UNLICENSE": "This is free and unencumbered software released into the public domain.",
		}, "UNLICENSE"},
		{
			map[string]string{"LICENSE": mit, "THIRD_PARTY_LICENSES/Go-LICENSE": bsd},
			"LICENSE THIRD_PARTY_LICENSES/Go-LICENSE",
		},
		{
			map[string]string{"LICENSE": mit, "a.h": "/* a */\n/* Copyright B */\nint x;", "b.h": "int y;"},
			"LICENSE a.h",
		},
		{map[string]string{"README.md": mit}, "no license that is known"},
		{map[string]string{"LICENSE": "Ask us."}, "no license that is known"},
	} {
		dir := t.TempDir()
		for name, content := range c.files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		folders := map[string]bool{dir: true}
		if _, err := os.Stat(filepath.Join(dir, "used")); err == nil {
			folders[filepath.Join(dir, "used")] = true
		}
		list, err := texts(dir, folders)
		var names []string
		for _, l := range list {
			names = append(names, l.name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("texts of %v = %q, want %q", c.files, got, c.want)
		}
	}
}

// TestDocument checks that every module is listed, and that a text that two modules share is printed once.
func TestDocument(t *testing.T) {
	shared := text{"LICENSE", mit}
	out := string(document([]*module{
		{Path: "example.org/a", Version: "v1.0.0", texts: []text{shared}},
		{Path: "example.org/b", Version: "v2.0.0", texts: []text{shared, {"PATENTS", "a grant"}}},
	}))
	for part, want := range map[string]int{
		"| example.org/a | v1.0.0 | MIT | [1](#text-1) |\n":              1,
		"| example.org/b | v2.0.0 | MIT | [1](#text-1) [2](#text-2) |\n": 1,
		mit:                                    1,
		"- `example.org/b/LICENSE`\n\n```text": 1,
		"### Text ":                            2,
	} {
		if got := strings.Count(out, part); got != want {
			t.Errorf("the document has %q %d times, want %d", part, got, want)
		}
	}
}
