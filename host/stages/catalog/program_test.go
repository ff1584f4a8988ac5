package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProgramThatCannotStart(t *testing.T) {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(self)
	foreign[18], foreign[19] = 243, 0 // e_machine: EM_RISCV
	object := slices.Clone(self)
	object[16] = 1 // e_type: ET_REL
	for _, tt := range []struct {
		name, content string
		want          string // of the reason; "" for a program that can be started
	}{
		{"whole", string(self), ""},
		{"script", "#! /bin/sh -e\n", ""},
		{"foreign", string(foreign), "executable prog is for another machine: EM_RISCV, and this one is EM_"},
		{"cut", string(self[:len(self)/2]), "executable prog is "},
		{"cut in its header", string(self[:20]), "executable prog is not a whole ELF file: "},
		{"object", string(object), "executable prog is no program, but an ELF file of type ET_REL"},
		{
			"no shebang", "echo hello\n",
			"executable prog is neither a program for Linux nor a script with #! at its beginning",
		},
		{"empty", "", "executable prog is neither a program for Linux nor a script with #! at its beginning"},
		{"no interpreter", "#!\n", "executable prog is a script with #! and no interpreter"},
		{
			"missing interpreter", "#!/no/such/shell\n",
			"executable prog is a script for /no/such/shell: no such file or directory",
		},
		{"folder as interpreter", "#!/usr\n", "executable prog is a script for /usr, which is no program"},
		{
			"lines of Windows", "#!/bin/sh\r\nexit\r\n",
			"executable prog is a script whose first line ends with a carriage return, as on Windows",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "noise", "plugin.json"), programJSON)
			write(t, filepath.Join(dir, "noise", "prog"), tt.content)
			entries, err := Scan(dir)
			if err != nil {
				t.Fatal(err)
			}
			e := entries[0]
			if e.Startable() != (tt.want == "") ||
				tt.want != "" && (e.State != Broken || !strings.HasPrefix(e.Reason, tt.want)) {
				t.Errorf("%s: %q, want %q", e.State, e.Reason, tt.want)
			}
		})
	}
}

func TestExposed(t *testing.T) {
	dir := t.TempDir()
	entries := []Entry{{Dir: filepath.Join(dir, "open")}, {Dir: filepath.Join(dir, "closed")}}
	for i, mode := range []os.FileMode{0o777, 0o755} {
		if err := os.Mkdir(entries[i].Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(entries[i].Dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	got := Exposed(dir, entries, 1000)
	want := "everyone can change " + entries[0].Dir + ", and plugins run with your rights: "
	if len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%q, want %q", got, want)
	}
}
