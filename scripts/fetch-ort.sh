#!/usr/bin/env bash
# Fetches the ONNX Runtime CPU library that xtts-host is tested with.
#
#   scripts/fetch-ort.sh [DEST [MACHINE]]
#
# DEST is the file to write; the default is .cache/ort/1.29.0/libonnxruntime.so.1.29.0
# in the repository, where the program and its tests look for it. Its licenses are written
# beside it, LICENSE and ThirdPartyNotices.txt. An existing library with the right checksum
# is kept with them, without network access. MACHINE is x86_64 or aarch64; the default is
# this machine's.
#
# The library comes from the ONNX Runtime wheel on PyPI. pip checks the pinned hash of
# the wheel, then this script checks that of the library. The wheel is built for one
# Python version, but the library does not depend on Python, so any python3 with pip
# works. Nothing is written outside DEST and a temporary folder.
set -euo pipefail

version=1.29.0
name=libonnxruntime.so.$version

fail() {
	echo "fetch-ort: $*" >&2
	exit 1
}

machine=${2:-$(uname -m)}
case "$(uname -s) $machine" in
"Linux x86_64")
	platform=manylinux_2_28_x86_64
	wheel_sha256=85f8e8406c52658735fe5c7fbfd3ebaa1ed340768324f6252e4274e374580a23
	library_sha256=8902e52a04bf6bf26f1613746811d6194f9c97ce7a6a7a28452b48522d3bd8d0
	;;
"Linux aarch64")
	platform=manylinux_2_28_aarch64
	wheel_sha256=16925ef8497e2c07e4b5ae15b504079b3ab3f65e22c58efd10dde0f3caea969a
	library_sha256=1444bdca675524f4d265f71397810c9b1f39164b6dccc8f1a39cd81d938e98f4
	;;
*)
	fail "no pinned library for $(uname -s) $machine; supported are Linux on x86_64 and aarch64"
	;;
esac

# The default is in the repository, from any working directory.
dest=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/ort/$version/$name}

is_right() {
	[ -f "$1" ] && echo "$library_sha256  $1" | sha256sum --check --status
}

folder=$(dirname "$dest")
if is_right "$dest" && [ -s "$folder/LICENSE" ] && [ -s "$folder/ThirdPartyNotices.txt" ]; then
	exit 0
fi

command -v python3 >/dev/null || fail "python3 is missing: it fetches and unpacks the library"
python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing: install it for $(command -v python3) (python3-pip on Debian)"

# The temporary folder is in the target's folder, so that the last step is an atomic rename.
mkdir -p "$folder"
tmp=$(mktemp -d "$folder/.fetch-XXXXXX")
trap 'rm -rf "$tmp"' EXIT

echo "onnxruntime==$version --hash=sha256:$wheel_sha256" >"$tmp/requirements.txt"
# Write nothing below HOME: no pip cache, no version check, and a folder for rustup, because
# pip runs "rustc --version" for its user agent.
PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$tmp/rustup" \
	python3 -m pip download --quiet --no-deps --require-hashes --only-binary=:all: \
	--implementation cp --python-version 3.11 --platform "$platform" \
	--dest "$tmp" --requirement "$tmp/requirements.txt" ||
	fail "pip could not fetch onnxruntime $version (its message is above)"

python3 - "$tmp" "$name" <<'PYTHON'
import pathlib, sys, zipfile

folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
(wheel,) = folder.glob("onnxruntime-*.whl")
with zipfile.ZipFile(wheel) as z:
    for file in f"capi/{name}", "LICENSE", "ThirdPartyNotices.txt":
        (folder / pathlib.Path(file).name).write_bytes(z.read(f"onnxruntime/{file}"))
PYTHON

is_right "$tmp/$name" || fail "the library in the wheel has an unexpected checksum"
chmod 0755 "$tmp/$name"
mv -f "$tmp/LICENSE" "$tmp/ThirdPartyNotices.txt" "$folder"
mv -f "$tmp/$name" "$dest"
echo "fetch-ort: ONNX Runtime $version at $dest" >&2
