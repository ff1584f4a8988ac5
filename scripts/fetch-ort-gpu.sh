#!/usr/bin/env bash
# Fetches the ONNX Runtime library with CUDA that xtts-host is tested with, and the libraries of NVIDIA that this machine lacks.
#
#   scripts/fetch-ort-gpu.sh [DEST]
#   scripts/fetch-ort-gpu.sh --nvrtc [DEST]    NVRTC only, even if the loader finds one: the tests compile kernels with it
#
# DEST is a folder; the default is .cache/ort-gpu/1.29.0 in the repository, where the program looks, or .cache/nvrtc/13.0.88.
# Existing files are kept. Everything comes from wheels on PyPI, and pip checks the pinned hashes: 202 MB for ONNX Runtime, and up
# to 1.2 GB for the libraries of CUDA that the dynamic loader does not find; 90 MB of them are NVRTC, CUDA's compiler. The driver is
# not included: install it on the machine. Nothing is written outside DEST and a temporary folder in it.
set -euo pipefail

version=1.29.0 nvrtc=13.0.88
fail() {
	echo "fetch-ort-gpu: $*" >&2
	exit 1
}
[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] || fail "no pinned library for $(uname -s) $(uname -m); supported is Linux on x86_64"
only= folder=ort-gpu/$version
if [ "${1:-}" = --nvrtc ]; then
	only=nvrtc folder=nvrtc/$nvrtc
	shift
fi
dest=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/$folder}
command -v python3 >/dev/null || fail "python3 is missing: it fetches and unpacks the libraries"
python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing: install it for $(command -v python3) (python3-pip on Debian)"
mkdir -p "$dest"
tmp=$(mktemp -d "$dest/.fetch-XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# wheel SPEC HASH FILE... puts the named shared libraries of a wheel into DEST.
wheel() {
	local spec=$1 hash=$2 missing=()
	shift 2
	for file in "$@"; do [ -f "$dest/$file" ] || missing+=("$file"); done
	[ ${#missing[@]} -gt 0 ] || return 0
	echo "fetch-ort-gpu: $spec" >&2
	echo "$spec --hash=sha256:$hash" >"$tmp/requirements.txt"
	# Write nothing below HOME: no pip cache, no version check, and a folder for rustup, because pip runs "rustc --version" for its
	# user agent.
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$tmp/rustup" \
		python3 -m pip download --quiet --no-deps --require-hashes --only-binary=:all: --implementation cp --python-version 3.11 \
		--platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 \
		--dest "$tmp" --requirement "$tmp/requirements.txt" || fail "pip could not fetch $spec (its message is above)"
	python3 - "$tmp" "${missing[@]}" <<'PYTHON'
import pathlib, shutil, sys, zipfile

folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as z:
    members = {pathlib.PurePosixPath(m).name: m for m in z.namelist()}
    for name in names:
        with z.open(members[name]) as source, open(folder / name, "wb") as target:
            shutil.copyfileobj(source, target)
wheel.unlink()
PYTHON
	for file in "${missing[@]}"; do
		chmod 0755 "$tmp/$file"
		mv "$tmp/$file" "$dest/$file"
	done
}

# found NAME reports whether the dynamic loader finds a library.
found() { python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$1" 2>/dev/null; }

# The runtime compiler opens its builtins by their full version.
compiler() {
	wheel "nvidia-cuda-nvrtc==$nvrtc" ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575 \
		libnvrtc-builtins.so.13.0 libnvrtc.so.13
}

if [ "$only" = nvrtc ]; then
	compiler
	exit
fi
wheel "onnxruntime-gpu==$version" de3caf93887ba4ad51c7d3cab04c7b464f9dd93c51047be5bfb413fd4a191e6a \
	libonnxruntime.so.$version libonnxruntime_providers_shared.so libonnxruntime_providers_cuda.so
found libcudart.so.13 || wheel nvidia-cuda-runtime==13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548 libcudart.so.13
found libcublas.so.13 || wheel nvidia-cublas==13.1.0.3 ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171 \
	libcublasLt.so.13 libcublas.so.13
found libcurand.so.10 || wheel nvidia-curand==10.4.0.35 1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc libcurand.so.10
found libcufft.so.12 || wheel nvidia-cufft==12.0.0.61 6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3 libcufft.so.12
found libcudnn.so.9 || wheel nvidia-cudnn-cu13==9.19.0.56 d20e1734305e9d68889a96e3f35094d733ff1f83932ebe462753973e53a572bf \
	libcudnn.so.9 libcudnn_graph.so.9 libcudnn_ops.so.9 libcudnn_cnn.so.9 libcudnn_adv.so.9 libcudnn_heuristic.so.9 \
	libcudnn_engines_precompiled.so.9 libcudnn_engines_runtime_compiled.so.9
found libnvrtc.so.13 || compiler
echo "fetch-ort-gpu: ONNX Runtime $version with CUDA in $dest" >&2
