#!/usr/bin/env bash
# Builds bin/xtts-host and the first-party plugins, with CUDA if this machine has a driver and a GPU: a program with CUDA does not
# start without them. CUDA=1 builds with CUDA for another machine, CUDA=0 builds without CUDA for any machine. A plugin always has a
# program for the CPU, and with CUDA a second one for the data GPU. On the CPU, only the plugin inference loads ONNX Runtime, with cgo.
#
#   scripts/build.sh           all
#   scripts/build.sh plugins   the plugins
set -euo pipefail
cd "$(dirname "$0")/.."

# driver reports whether a program with CUDA would start here. gorgonia.org/cu makes the same call at its start.
driver() {
	python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL("libcuda.so.1").cuInit(0) != 0)' 2>/dev/null
}

case "${CUDA:-}" in
0) cuda=0 why="as CUDA=0 asks" ;;
1) cuda=1 why="as CUDA=1 asks" ;;
"") if driver; then cuda=1 why="for this machine's GPU; CUDA=0 builds without it"; else cuda=0 why="this machine has no GPU with a driver; CUDA=1 builds with it"; fi ;;
*) echo "error: CUDA=$CUDA: take 1 or 0" >&2 && exit 1 ;;
esac

tags=
if [ "$cuda" = 1 ]; then
	env=$(scripts/cuda-env.sh)
	eval "$env"
	tags=cuda
fi
if [ "${1:-}" != plugins ]; then
	[ -e bin/xtts-host ] || echo "bin/xtts-host: compiling; the first time also the modules that it uses, which takes minutes"
	go build -trimpath -tags "$tags" -ldflags '-s -w -buildid=' -o bin/xtts-host ./cmd/xtts-host
	if [ "$cuda" = 1 ] && driver; then
		scripts/fetch-ort.sh --gpu
	fi
	echo "bin/xtts-host: built with$([ "$cuda" = 1 ] || echo out) CUDA ($why)"
fi

# A plugin built from the same sources has the same bytes in any folder and at any commit, because a run can only be resumed with
# the plugins that it began with. So it contains no paths (-trimpath), no commit (-buildvcs=false) and no hash of the flags
# (-buildid=). The host contains the commit, as its version.
platform=$(go env GOOS)_$(go env GOARCH)
for p in features augment inference; do
	program=plugins/$p/${p}_$platform
	CGO_ENABLED=$([ $p = inference ] && echo 1 || echo 0) go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$program" "./plugins/$p"
	rm -f "${program}_cuda" # may be left from an earlier build
	if [ "$cuda" = 1 ]; then
		go build -trimpath -buildvcs=false -tags cuda -ldflags '-s -w -buildid=' -o "${program}_cuda" "./plugins/$p"
	fi
	(cd "plugins/$p" && sha256sum plugin.json "${p}_$platform"* >plugin.sum)
	echo "plugins/$p: built with$([ -e "${program}_cuda" ] || echo out) a program for the data GPU"
done
