#!/usr/bin/env bash
# Makes plugins as their authors would, with plugins new, in a folder with a space. The one in Go is tested, built and checked
# without cgo and without the checkout, with its copy of the SDK and with the module that make go-sdk writes. The one in Python
# has its own SDK, in the environment of scripts/venv-plugin.sh. GOFLAGS, GOPATH, GOCACHE and GOPROXY are those of the caller;
# everything else happens in a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD

fail() { echo "error: $1" >&2; [ $# -lt 2 ] || echo "hint: $2" >&2; exit 1; }

[ -x bin/xtts-host ] || fail "$checkout/bin/xtts-host is missing" "make build"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$checkout/bin/xtts-host" plugins new "plug ins/room-echo" >"$work/created"
cd "plug ins/room-echo"

export GOWORK=off CGO_ENABLED=0
go list -deps -test ./... >/dev/null || fail "go.mod or go.sum of a new plugin is out of date" "cd shared && go mod tidy"
make --silent test build

program=room-echo_$(go env GOOS)_$(go env GOARCH)
sha256sum --check --quiet plugin.sum
go version -m "$program" >"$work/build"
grep -q 'CGO_ENABLED=0' "$work/build" || fail "$program was built with cgo"
for module in github.com/yalue/onnxruntime_go gorgonia.org/cu github.com/NVIDIA/go-nvml; do
	! grep -F "$module" "$work/build" || fail "$module is in the build of a plugin"
done
grep -q 'github.com/xtts-host/xtts-host' "$work/build" || fail "go version -m lists no modules of $program"
! grep -rl 'my-plugin' --exclude-dir sdk . || fail "a new plugin has the template's name in it"

# The SDK reads recordings, without cgo and with the modules that go.mod has.
mkdir noise
cat >noise/main.go <<'EOF'
package main

import (
	"fmt"
	"os"

	"github.com/xtts-host/xtts-host/shared/audio"
)

func main() {
	for _, file := range os.Args[1:] {
		samples, err := audio.Read(file, 22050)
		fmt.Println(len(samples), err)
	}
}
EOF
read=$(go run ./noise "$checkout"/shared/audio/testdata/{vorbis-22050-1.ogg,silk-48000-1.opus,mpeg1-44100-1.mp3,celt-48000-2.flac})
[ "$read" = "$(for _ in 1 2 3 4; do echo '6615 <nil>'; done)" ] || fail "the SDK of a new plugin reads: $read"
rm -r noise

# It also builds with the module from a proxy, in place of its copy: shared needs nothing of the host.
cp -r . ../with-module
(
	cd ../with-module && rm -rf sdk "$program"
	version=$(cd "$checkout" && go run ./scripts/gosdk shared "$work/proxy")
	module=github.com/xtts-host/xtts-host/shared
	forget() { # the version has other content after the next change
		local kept=("$(go env GOMODCACHE)"/{,cache/download/}$module*)
		chmod -R u+w "${kept[@]}" 2>/dev/null || true
		rm -rf "${kept[@]}"
	}
	forget
	go mod edit -dropreplace $module -droprequire $module
	GOPROXY="file://$work/proxy,$(go env GOPROXY)" GONOSUMDB=$module go get $module@"$version" 2>"$work/get" ||
		{ cat "$work/get" >&2; exit 1; }
	make --silent test build
	go version -m "$program" | grep -qF "$module	$version" || fail "$program was not built with $module $version"
	forget
)

# New plugins, examples and first-party plugins keep the rules that they explain.
"$checkout/scripts/venv-plugin.sh"
"$checkout/bin/xtts-host" plugins new ../py-clip --lang python >"$work/created"
ln -s "$checkout/.cache/venv-plugin" ../py-clip/.venv
touch ../py-clip/requirements.lock # scripts/test-examples.sh makes a real one, from the network
(cd ../py-clip && PYTHONDONTWRITEBYTECODE=1 .venv/bin/python -m pytest -q && make --silent release && sha256sum --check --quiet plugin.sum)
PATH=$checkout/.cache/venv-plugin/bin:$PATH "$checkout/bin/xtts-host" plugins test --cache-dir "$work/cache" . ../py-clip \
	"$checkout/plugins/features" "$checkout/plugins/augment" "$checkout/plugins/testdata/python/gain" >"$work/rules" || { cat "$work/rules"; exit 1; }

# Started by hand it prints a hint.
status=0
output=$("./$program" 2>&1) || status=$?
[ "$status" = 1 ] && grep -q '^hint: ' <<<"$output" || fail "started by hand, $program ends with status $status and prints: $output"

echo "plugins new: tested, in both languages, and built outside of the checkout ($(grep -c '^[[:space:]]dep[[:space:]]' "$work/build") modules, no cgo)"
