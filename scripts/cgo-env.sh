#!/usr/bin/env bash
# Prepares the checkout for Go, and prints the variables that Go needs:
#
#   eval "$(scripts/cgo-env.sh)" && go build ./...
#
# In a shell with these, go build, go vet, go test and gopls work as usual. A build needs the header cuda.h and
# something to link with in place of the driver's libcuda, but neither a driver nor a GPU. The header is fetched from
# PyPI into .cache/cuda: from NVIDIA's wheel, pinned by hash. scripts/libcuda.sh makes the library.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cuda=$(readlink -m "$root/.cache/cuda") # checkouts that share .cache by a link have the same flags, and so compile once

fail() {
	echo "error: $*" >&2
	exit 1
}

version=13.0.96
# pinned FILE reports whether FILE is NVIDIA's cuda.h of that version. It is the same for every platform.
pinned() {
	echo "64025f81a9d6d2b10e9e11654f3523e5b046d01b883f0b9ca474e463274b80d4  $1" | sha256sum --check --status 2>/dev/null
}

# fetch DEST downloads cuda.h of that version to DEST.
fetch() {
	local platform wheel tmp
	case "$(uname -m)" in
	x86_64) platform=manylinux2014_x86_64 wheel=7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548 ;;
	aarch64) platform=manylinux2014_aarch64 wheel=ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55 ;;
	*) fail "no pinned CUDA header for $(uname -m)" ;;
	esac
	mkdir -p "$(dirname "$1")"
	tmp=$(mktemp -d "$(dirname "$1")/.fetch-XXXXXX")
	trap 'rm -rf "$tmp"' RETURN
	echo "nvidia-cuda-runtime==$version --hash=sha256:$wheel" >"$tmp/requirements.txt"
	# Write nothing below HOME: no pip cache, no version check, and a folder for rustup, because pip runs "rustc
	# --version" for its user agent.
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$tmp/rustup" \
		python3 -m pip download --quiet --no-deps --require-hashes --only-binary=:all: --platform "$platform" \
		--dest "$tmp" --requirement "$tmp/requirements.txt" >&2 ||
		fail "pip could not fetch the headers of CUDA $version (its message is above)"
	python3 -m zipfile -e "$tmp"/nvidia_cuda_runtime-*.whl "$tmp"
	pinned "$tmp/nvidia/cu13/include/cuda.h" || fail "cuda.h in the wheel has an unexpected checksum"
	mv "$tmp/nvidia/cu13/include/cuda.h" "$1"
	echo "cgo-env: cuda.h of CUDA $version at $1" >&2
}

compat=$cuda/compat include=$cuda/include library=$cuda/lib
# For another platform than this one, GOARCH and CC name it and its compiler, and it has a library of its own.
if [ -n "${GOARCH:-}" ] && [ "$GOARCH" != "$(go env GOHOSTARCH)" ]; then
	library+=-$GOARCH cross=1
fi
pinned "$include/cuda.h" || fetch "$include/cuda.h"
"$root/scripts/libcuda.sh" "$include" "$library"
if ! cmp --silent "$root/gpu/cuda/compat/cuda.h" "$compat/cuda.h"; then
	mkdir -p "$compat"
	cp "$root/gpu/cuda/compat/cuda.h" "$compat/.cuda.h-$$"
	mv "$compat/.cuda.h-$$" "$compat/cuda.h"
fi

# Values that are set already come first, and are kept unchanged if they contain these paths, as in the Makefile. The
# defaults: "-O2 -g" is Go's own. NVML's header marks 40 functions as deprecated, and the binding uses all of them.
# NVML's symbols are resolved when they are called, so the program must not be linked with -z now, the default of some
# compilers. The headers of this repository come first: see gpu/cuda/compat/cuda.h.
headers="'-I$compat' '-I$include'" library="'-L$library'"
cflags=${CGO_CFLAGS:--O2 -g -Wno-deprecated-declarations} ldflags=${CGO_LDFLAGS:--O2 -g -Wl,-z,lazy}
[[ $cflags == *"$headers"* ]] || cflags+=" $headers"
[[ $ldflags == *"$library"* ]] || ldflags+=" $library"
[ -z "${cross:-}" ] || ldflags+=" -Wl,--no-warn-search-mismatch" # package cu names folders of this machine
printf 'export CGO_CFLAGS=%q CGO_LDFLAGS=%q\n' "$cflags" "$ldflags"
