#!/usr/bin/env bash
# Builds OUT/libcuda.so.1, and the link libcuda.so to it, with every function that INCLUDE/cuda.h declares.
#
#   scripts/cuda-stub.sh INCLUDE OUT [SOURCE.c]
#
# SOURCE.c implements some of the functions. The others return 34, CUDA_ERROR_STUB_LIBRARY, like the toolkit's stub. A library
# that is newer than the header, the folder of the source, the kernels and this script is kept.
set -euo pipefail
include=$(readlink -f "$1") out=$2 source=${3:-}
library=$out/libcuda.so.1
if [ "$library" -nt "$include/cuda.h" ] && [ "$library" -nt "${BASH_SOURCE[0]}" ] && { [ -z "$source" ] || [ -z "$(find "$(dirname "$source")" gpu/kernels -type f -newer "$library")" ]; } &&
	[ "$(cat "$out/include" 2>/dev/null)" = "$include" ]; then
	exit 0
fi

mkdir -p "$out"
tmp=$(mktemp -d "$out/.make-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
# Twice: where a function has several versions, the header declares the old names only with the internal switch.
for switch in -U__CUDA_API_VERSION_INTERNAL -D__CUDA_API_VERSION_INTERNAL; do
	echo '#include <cuda.h>' | cc -E -P "$switch" "-I$include" -
done | tr '\n' ' ' | grep -oE 'CUresult +cu[A-Za-z0-9_]+ *\(' | sed -E 's/CUresult +//; s/ *\(//' | sort -u |
	sed 's/.*/__attribute__((weak)) int &(void) { return 34; }/' >"$tmp/calls.c"
[ -s "$tmp/calls.c" ] || { echo "error: $include/cuda.h declares no call" >&2; exit 1; }
cc -shared -fPIC -O1 -ffp-contract=off -Wall -Werror "-I$include" -Wl,-soname,libcuda.so.1 -o "$tmp/libcuda.so.1" "$tmp/calls.c" ${source:+"$source"} -lm -ldl
echo "$include" >"$out/include"
ln -sf libcuda.so.1 "$out/libcuda.so"
mv "$tmp/libcuda.so.1" "$library" # in one step: another build may be linking
