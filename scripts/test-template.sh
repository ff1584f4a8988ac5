#!/usr/bin/env bash
# Uses plugins/template as a plugin author would: copies it out of the tree, points its replace line at this checkout, tests and
# builds it without cgo, and checks the modules in the program. GOFLAGS, GOPATH, GOCACHE and GOPROXY are those of the caller;
# everything else happens in a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD

fail() { echo "error: $1" >&2; [ $# -lt 2 ] || echo "hint: $2" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r plugins/template "$work/my-plugin"
cd "$work/my-plugin"
make --silent clean # removes what was built in the checkout

export GOWORK=off CGO_ENABLED=0
go mod edit -replace "github.com/xtts-host/xtts-host/shared=$checkout/shared"
go list -deps -test ./... >/dev/null ||
	fail "go.mod or go.sum of plugins/template is out of date" "cd plugins/template && go mod tidy"
go vet -trimpath ./...
go test -trimpath -count=1 ./...
make --silent build

program=my-plugin_$(go env GOOS)_$(go env GOARCH)
sha256sum --check --quiet plugin.sum
go version -m "$program" >"$work/build"
grep -q 'CGO_ENABLED=0' "$work/build" || fail "$program was built with cgo"
for module in github.com/yalue/onnxruntime_go gorgonia.org/cu github.com/NVIDIA/go-nvml; do
	! grep -F "$module" "$work/build" || fail "$module is in the build of a plugin"
done
grep -q 'github.com/xtts-host/xtts-host' "$work/build" || fail "go version -m lists no modules of $program"

# Templates, examples and first-party plugins keep the rules that they explain.
[ -x "$checkout/bin/xtts-host" ] || fail "$checkout/bin/xtts-host is missing" "make build"
"$checkout/scripts/venv-plugin.sh"
PATH=$checkout/.cache/venv-plugin/bin:$PATH "$checkout/bin/xtts-host" plugins test --cache-dir "$work/cache" "$work/my-plugin" \
	"$checkout/plugins/features" "$checkout/plugins/augment" "$checkout/plugins/testdata/python/gain" >"$work/rules" || { cat "$work/rules"; exit 1; }

# Started by hand it prints a hint.
status=0
output=$("./$program" 2>&1) || status=$?
[ "$status" = 1 ] && grep -q '^hint: ' <<<"$output" || fail "started by hand, $program ends with status $status and prints: $output"

echo "plugins/template: vetted, tested and built outside the tree ($(grep -c '^[[:space:]]dep[[:space:]]' "$work/build") modules, no cgo)"
