#!/usr/bin/env bash
# Builds bin/xtts-host and says whether with CUDA: with it when this machine has a driver that finds a GPU, since a program
# that has CUDA does not start without. CUDA=1 builds with it for another machine, CUDA=0 without it for every machine.
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
go build -trimpath -tags "$tags" -ldflags '-s -w' -o bin/xtts-host ./cmd/xtts-host
if [ "$cuda" = 1 ] && driver; then
	scripts/fetch-ort.sh --gpu
fi
echo "bin/xtts-host: built with$([ "$cuda" = 1 ] || echo out) CUDA ($why)"
