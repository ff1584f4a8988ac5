#!/usr/bin/env bash
# Builds fake GPU libraries in FOLDER (.cache/cuda/fake): a libcuda.so.1 and a libnvidia-ml.so.1 with GPU memory on the host
# (gpu/cuda/fakecuda), a libcublas.so.13, which is libcublasLt.so.13, too, and FOLDER/nvrtc/libnvrtc.so.13, which compiles kernels for the CPU. A program built with the tag fakegpu trains
# on them, and the CPU computes:
#
#   fake=$(scripts/cuda-fake.sh)
#   export LD_LIBRARY_PATH=$fake:$fake/nvrtc
#   go build -tags cuda,fakegpu -o bin/xtts-host ./cmd/xtts-host
#   bin/xtts-host --plugins ./plugins --ort-lib .cache/ort/1.29.0/libonnxruntime.so.1.29.0
#
# XTTS_HOST_TEST_FAKE_CARDS=1024,1024 gives two GPUs of 1024 MB each. The script prints the folder.
set -euo pipefail
cd "$(dirname "$0")/.."

env=$(scripts/cuda-env.sh)
eval "$env"
out=${1:-$PWD/.cache/cuda/fake} sources=gpu/cuda/fakecuda
scripts/cuda-stub.sh "$XTTS_HOST_CUDA_INCLUDE" "$out" "$sources/fake.c"
library=$out/libnvidia-ml.so.1
if [ -z "$(find "$library" -newer "$sources/nvml.c" -newer "$sources/card.h" 2>/dev/null)" ]; then
	header=$(go list -f '{{.Dir}}' github.com/NVIDIA/go-nvml/pkg/nvml) # the same header as in the program
	cc -shared -fPIC -O1 -Wall -Werror -Wno-deprecated-declarations -DNVML_NO_UNVERSIONED_FUNC_DEFS "-I$header" \
		-Wl,-soname,libnvidia-ml.so.1 -o "$library.$$" "$sources/nvml.c"
	mv "$library.$$" "$library"
fi
library=$out/nvrtc/libnvrtc.so.13 emulation=ortgraphs/fuse/cudac/cudactest/emulate.h
if [ -z "$(find "$library" -newer "$sources/nvrtc.c" -newer "$emulation" 2>/dev/null)" ]; then
	mkdir -p "$out/nvrtc"
	cc -shared -fPIC -O1 -Wall -Werror "-DEMULATION=\"$emulation\"" -o "$library.$$" "$sources/nvrtc.c"
	echo | cc -shared -fPIC -xc -o "$out/nvrtc/libnvrtc-builtins.so.13.0" -
	mv "$library.$$" "$library"
fi
library=$out/libcublas.so.13 products=ortgraphs/ort/orttest/multiply.h
if [ -z "$(find "$library" -newer "$sources/cublas.c" -newer "$products" 2>/dev/null)" ]; then
	cc -shared -fPIC -O1 -Wall -Werror -Wl,-soname,libcublas.so.13 -o "$library.$$" "$sources/cublas.c" -lm
	mv "$library.$$" "$library"
fi
ln -sf libcublas.so.13 "$out/libcublasLt.so.13" # one file has the functions of both
echo "$out"
