#!/usr/bin/env bash
# Compiles the kernels gpu/kernels/*.cu to PTX in the same folder. The program embeds the PTX, and the driver compiles it for its
# GPU. Run it after a change of a kernel.
#
#   scripts/kernels.sh [--check]
#
# --check changes nothing and fails if the committed PTX differs from the compiler's. Without the compiler it reports that and
# succeeds.
#
# The compiler comes from NVIDIA's wheels on PyPI, with pinned hashes, into .cache/nvcc (180 MB). Its CUDA version is that of ONNX
# Runtime, so its PTX works with every driver that runs ONNX Runtime.
set -euo pipefail
cd "$(dirname "$0")/.."

cuda=.cache/nvcc/13.0.88
if [ "${1-}" = --check ] && [ ! -x "$cuda/bin/nvcc" ]; then
	echo "kernels: skipped: no compiler in $cuda; scripts/kernels.sh fetches it"
	exit
fi
if [ ! -x "$cuda/bin/nvcc" ]; then
	mkdir -p .cache/nvcc
	tmp=$(mktemp -d .cache/nvcc/fetch-XXXXXX)
	trap 'rm -rf "$tmp"' EXIT
	cat >"$tmp/requirements.txt" <<'PINNED'
nvidia-cuda-nvcc==13.0.88 --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
nvidia-nvvm==13.0.88 --hash=sha256:c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
nvidia-cuda-crt==13.0.88 --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
nvidia-cuda-runtime==13.0.88 --hash=sha256:422a38f7c739ecbdd3a4b6ec7ed0a1d74db43d8e9bc26685f3d845638922b178
PINNED
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$tmp/rustup" python3 -m pip download --quiet --no-deps --require-hashes --only-binary=:all: \
		--dest "$tmp" --requirement "$tmp/requirements.txt"
	for wheel in "$tmp"/*.whl; do python3 -m zipfile -e "$wheel" "$tmp"; done
	chmod +x "$tmp"/nvidia/cu13/bin/* "$tmp"/nvidia/cu13/nvvm/bin/*
	mv "$tmp/nvidia/cu13" "$cuda"
fi
out=$(mktemp -d .cache/nvcc/out-XXXXXX)
trap 'rm -rf "$out" "${tmp-}"' EXIT
for source in gpu/kernels/*.cu; do
	ptx=$out/$(basename "${source%.cu}").ptx
	# IEEE 754 arithmetic, without fused multiply-add. sm_75 is the oldest architecture that this CUDA supports.
	"$cuda/bin/nvcc" -ptx -arch=compute_75 -fmad=false -prec-div=true -prec-sqrt=true -o "$ptx" "$source"
	echo "// of the source with the SHA-256 $(sha256sum <"$source" | cut -d ' ' -f 1)" >>"$ptx" # a test checks it
	if [ "${1-}" = --check ]; then
		cmp "$ptx" "${source%.cu}.ptx" || {
			echo "error: ${source%.cu}.ptx differs from the PTX compiled from $source" >&2
			echo "hint: scripts/kernels.sh writes it" >&2
			exit 1
		}
	else
		cp "$ptx" "${source%.cu}.ptx"
	fi
done
