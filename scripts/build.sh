#!/usr/bin/env bash
# Builds bin/xtts-host and the first-party plugins, and says whether with CUDA: with it when this machine has a driver that finds a
# GPU, since a program that has CUDA does not start without. CUDA=1 builds with it for another machine, CUDA=0 without it for every
# machine. A plugin has a program for the CPU in any case, and with CUDA another one for the data GPU.
#
#   scripts/build.sh           all
#   scripts/build.sh plugins   the plugins
set -euo pipefail
cd "$(dirname "$0")/.."

# driver tells whether a program with CUDA would start here, by the call that gorgonia.org/cu makes at its start.
driver() {
	python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL("libcuda.so.1").cuInit(0) != 0)' 2>/dev/null
}

case "${CUDA:-}" in
0) cuda=0 why="as CUDA=0 asks" ;;
1) cuda=1 why="as CUDA=1 asks" ;;
"") if driver; then cuda=1 why="for this machine's GPU; CUDA=0 builds without"; else cuda=0 why="this machine has no GPU with a driver; CUDA=1 builds with it"; fi ;;
*) echo "error: CUDA=$CUDA: take 1 or 0" >&2 && exit 1 ;;
esac

tags=
if [ "$cuda" = 1 ]; then
	env=$(scripts/cuda-env.sh)
	eval "$env"
	tags=cuda
fi
if [ "${1:-}" != plugins ]; then
	go build -trimpath -tags "$tags" -ldflags '-s -w' -o bin/xtts-host ./cmd/xtts-host
	if [ "$cuda" = 1 ] && driver; then
		scripts/fetch-ort.sh --gpu
	fi
	echo "bin/xtts-host: built with$([ "$cuda" = 1 ] || echo out) CUDA ($why)"
fi

# From the same sources a plugin gets the same bytes in any folder and at any commit: a run can only be resumed with the plugins it
# began with. So neither paths (-trimpath), nor the commit (-buildvcs=false), nor a hash of the flags (-buildid=) are in it. The host
# holds the commit, as its version.
platform=$(go env GOOS)_$(go env GOARCH)
for p in features augment; do
	program=plugins/$p/${p}_$platform
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$program" "./plugins/$p"
	rm -f "${program}_cuda" # one of an earlier build would be older than the other program
	if [ "$cuda" = 1 ]; then
		go build -trimpath -buildvcs=false -tags cuda -ldflags '-s -w -buildid=' -o "${program}_cuda" "./plugins/$p"
	fi
	(cd "plugins/$p" && sha256sum plugin.json "${p}_$platform"* >plugin.sum)
	echo "plugins/$p: built with$([ "$cuda" = 1 ] || echo out) a program for the data GPU"
done
