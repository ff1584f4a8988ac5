package ort

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// slotsCheck includes slots.h and structs.h together with the header that onnxruntime_go was compiled with.
const slotsCheck = `
#include <stdbool.h>
#include <stddef.h>
#include <onnxruntime_c_api.h>
#include "slots.h"
#include "structs.h"
#define SLOT(name, slot, result, ...) \
	_Static_assert(offsetof(OrtApi, name) == (slot) * sizeof(void *), "slot of " #name); \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((OrtApi *)0)->name), result (*)(__VA_ARGS__)), "type of " #name);
ORT_SLOTS(SLOT)
#define CONSTANT(name, value) _Static_assert((name) == (value), "value of " #name);
ORT_CONSTANTS(CONSTANT)
_Static_assert(sizeof(ONNXTensorElementDataType) == sizeof(int), "api.go passes enumerations as int");
#define FIELD(name, result, ...) result (*name)(__VA_ARGS__);
struct operator {
	uint32_t version;
	ORT_CUSTOM_OP(FIELD)
};
struct allocator {
	uint32_t version;
	ORT_ALLOCATOR(FIELD)
};
#define SAME(theirs, ours, name, ...) \
	_Static_assert(offsetof(theirs, name) == offsetof(ours, name), "place of " #name); \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((theirs *)0)->name), __typeof__(((ours *)0)->name)), "type of " #name);
#define OPERATOR(...) SAME(OrtCustomOp, struct operator, __VA_ARGS__)
#define ALLOCATOR(...) SAME(OrtAllocator, struct allocator, __VA_ARGS__)
ORT_CUSTOM_OP(OPERATOR)
ORT_ALLOCATOR(ALLOCATOR)
_Static_assert(sizeof(OrtCustomOp) == sizeof(struct operator), "size of OrtCustomOp");
`

func TestSlots(t *testing.T) {
	lists := map[string][]byte{}
	for _, name := range []string{"slots.h", "structs.h"} {
		list, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lists[name] = list
	}
	if out, err := compileLists(t, lists); err != nil {
		t.Errorf("the lists disagree with the header of onnxruntime_go: %v\n%s", err, out)
	}

	// The check itself must fail if the lists differ.
	differences := []struct{ list, old, new, want string }{
		{"slots.h", "X(RunWithBinding, 133,", "X(RunWithBinding, 134,", "slot of RunWithBinding"},
		{
			"slots.h", "X(BindInput, 136, OrtStatus *, OrtIoBinding *,", "X(BindInput, 136, OrtStatus *,",
			"type of BindInput",
		},
		{"slots.h", "X(ORT_API_VERSION, 29)", "X(ORT_API_VERSION, 28)", "value of ORT_API_VERSION"},
		{"structs.h", "X(KernelDestroy, void, void *)", "X(KernelDestroy, int, void *)", "type of KernelDestroy"},
		{"structs.h", "\tX(GetStartVersion, int, const OrtCustomOp *) \\\n", "", "place of GetEndVersion"},
		{"structs.h", "\tX(Reserve, void *, OrtAllocator *, size_t) \\\n", "", "place of AllocOnStream"},
		{"structs.h", " \\\n\tX(ReleaseAliasMap, void, int *, int *)", "", "size of OrtCustomOp"},
	}
	wrong := maps.Clone(lists)
	for _, d := range differences {
		before := wrong[d.list]
		if wrong[d.list] = bytes.Replace(before, []byte(d.old), []byte(d.new), 1); bytes.Equal(wrong[d.list], before) {
			t.Fatalf("%s has no %q", d.list, d.old)
		}
	}
	out, err := compileLists(t, wrong)
	for _, d := range differences {
		if err == nil || !strings.Contains(out, d.want) {
			t.Errorf("%q instead of %q was not noticed: %v\n%s", d.new, d.old, err, out)
		}
	}
}

// compileLists compiles slotsCheck with these files.
func compileLists(t *testing.T, lists map[string][]byte) (string, error) {
	t.Helper()
	dir := t.TempDir()
	files := maps.Clone(lists)
	files["check.c"] = []byte(slotsCheck)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	header := goTool(t, "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go")
	compiler := strings.Fields(goTool(t, "env", "CC"))
	args := append(compiler[1:], "-fsyntax-only", "-Werror", "-I", header, filepath.Join(dir, "check.c"))
	out, err := exec.Command(compiler[0], args...).CombinedOutput()
	return string(out), err
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	if s := strings.TrimSpace(string(out)); err == nil && s != "" {
		return s
	}
	t.Fatalf("go %s: %v, %q", strings.Join(args, " "), err, out)
	return ""
}

// A library from before API 29 provides no table. openLibrary must report that, and keep the table it has.
func TestUnusableLibraries(t *testing.T) {
	version := Version()
	for _, tt := range []struct{ name, source, want string }{
		{"old", `
			static const void *api(unsigned version) { return 0; }
			static const char *version(void) { return "1.20.1"; }
			static struct { const void *(*api)(unsigned); const char *(*version)(void); } base = {api, version};
			void *OrtGetApiBase(void) { return &base; }`,
			"ONNX Runtime 1.20.1 lacks API version 29: 1.29 or later is needed"},
		{"another", "int unrelated;", "not an ONNX Runtime library: it has no OrtGetApiBase"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			source, lib := filepath.Join(dir, "lib.c"), filepath.Join(dir, "lib.so")
			if err := os.WriteFile(source, []byte(tt.source), 0o600); err != nil {
				t.Fatal(err)
			}
			compiler := strings.Fields(goTool(t, "env", "CC"))
			args := append(compiler[1:], "-shared", "-fPIC", "-o", lib, source)
			if out, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, err := load([]string{lib, loaderDefault}, openLibrary)
			if want := fmt.Sprintf("ONNX Runtime library %s: %s", lib, tt.want); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
	if Version() != version {
		t.Errorf("the version changed to %s", Version())
	}
}
