#!/usr/bin/env bash
# Builds fake GPU libraries in FOLDER (.cache/cuda/fake), on which the program trains where there is no GPU: the CPU computes.
#
#   libcuda.so.1, libnvidia-ml.so.1    a driver with GPU memory on the host (gpu/cuda/fakecuda)
#   libcublas.so.13, libcublasLt.so.13
#   nvrtc/libnvrtc.so.13               compiles kernels for the CPU
#   libnccl.so.2                       sums between processes (gpu/nccl/nccltest/fake)
#   libonnxruntime.so                  passes what is asked of CUDA to ONNX Runtime's CPU
#
#   fake=$(scripts/cuda-fake.sh)
#   export LD_LIBRARY_PATH=$fake:$fake/nvrtc XTTS_PLUGIN_TEST_FAKE_ORT=$PWD/.cache/ort/1.29.0/libonnxruntime.so.1.29.0
#   bin/xtts-host --plugins ./plugins --ort-lib $fake/libonnxruntime.so
#
# XTTS_PLUGIN_TEST_FAKE_CARDS=1024,1024 gives two GPUs of 1024 MB each. The script prints the folder.
set -euo pipefail
cd "$(dirname "$0")/.."

env=$(scripts/cgo-env.sh)
eval "$env"
out=${1:-$PWD/.cache/cuda/fake} sources=gpu/cuda/fakecuda kernels=gpu/kernels
mkdir -p "$out/nvrtc"

# stale LIBRARY SOURCE... reports whether a library is missing or older than one of its sources.
stale() {
	local library=$1 source
	shift
	for source in "$@"; do [ "$library" -nt "$source" ] || return 0; done
	return 1
}

# library LIBRARY ARGUMENT... compiles a library.
library() { cc -shared -fPIC -O1 -Wall -Werror "-Wl,-soname,${1##*/}" -o "$1.$$" "${@:2}" -lm -ldl && mv "$1.$$" "$1"; }

# header MODULE is the folder of a Go module: its C header is that of the program.
header() { go list -f '{{.Dir}}' "$1"; }

if stale "$out/libcuda.so.1" $sources/*.[ch] $kernels/*; then
	library "$out/libcuda.so.1" -ffp-contract=off -I.cache/cuda/include $sources/fake.c
fi
if stale "$out/libnvidia-ml.so.1" $sources/nvml.c $sources/card.h; then
	library "$out/libnvidia-ml.so.1" -Wno-deprecated-declarations -DNVML_NO_UNVERSIONED_FUNC_DEFS "-I$(header github.com/NVIDIA/go-nvml/pkg/nvml)" $sources/nvml.c
fi
emulation=ortgraphs/fuse/cudac/cudactest/emulate.h
if stale "$out/nvrtc/libnvrtc.so.13" $sources/nvrtc.c $emulation; then
	echo | cc -shared -fPIC -xc -o "$out/nvrtc/libnvrtc-builtins.so.13.0" -
	# Most of a kernel's compilation would be that of the emulation. Without -O1 its run takes several times as long.
	flags="-std=c++17 -O1 -w -fno-strict-aliasing -fsanitize=alignment -U_FORTIFY_SOURCE -fPIC"
	rm -rf "$out/nvrtc/compiled"
	cat <(echo '#include <utility>') $emulation >"$out/nvrtc/emulation.h"
	c++ $flags -xc++-header -o "$out/nvrtc/emulation.h.gch" "$out/nvrtc/emulation.h"
	library "$out/nvrtc/libnvrtc.so.13" "-DFLAGS=\"$flags\"" $sources/nvrtc.c
fi
# The library keeps the kernels here that it has compiled.
mkdir -p "$out/nvrtc/compiled"
find "$out/nvrtc/compiled" -type f -mtime +7 -delete
if stale "$out/libcublas.so.13" $sources/cublas.c ortgraphs/ort/orttest/multiply.h; then
	library "$out/libcublas.so.13" $sources/cublas.c
	ln -sf libcublas.so.13 "$out/libcublasLt.so.13" # one file has the functions of both
fi
if stale "$out/libnccl.so.2" gpu/nccl/nccltest/fake/nccl.c; then
	library "$out/libnccl.so.2" gpu/nccl/nccltest/fake/nccl.c
fi
if stale "$out/libonnxruntime.so" $sources/ort.c; then
	library "$out/libonnxruntime.so" "-I$(header github.com/yalue/onnxruntime_go)" $sources/ort.c
fi
echo "$out"
