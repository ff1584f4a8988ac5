#!/usr/bin/env bash
# Compares the audio decoder with libsndfile and soxr: converts a clip to 22 formats and compares the decoded samples, sample by
# sample before resampling and in decibels after it. -v prints a table; docs/audio.md has its bounds.
#
#   scripts/test-audio.sh [-v]
#
# The references are made with .cache/venv-audio, an environment that the first run creates. Nothing is written outside .cache
# in the repository and a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(numpy==2.4.6 soundfile==0.14.0 soxr==1.1.0)

fail() {
	echo "test-audio: $*" >&2
	exit 1
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
venv=$PWD/.cache/venv-audio
if [ "$(cat "$venv/ready" 2>/dev/null)" != "${packages[*]}" ] || [ ! -x "$venv/bin/python" ]; then
	command -v python3 >/dev/null || fail "python3 is missing: install Python 3.11 or later"
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
		fail "$(command -v python3) is $(python3 --version): numpy needs Python 3.11 or later"
	# Write nothing below HOME: no pip cache, no version check, and a folder for rustup, because pip (also when started by venv)
	# runs "rustc --version" for its user agent. `ready` is written last.
	export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$tmp/rustup"
	python3 -m venv --clear "$venv" || fail "python3 -m venv failed: install the venv module (python3-venv on Debian)"
	"$venv/bin/python" -m pip install --quiet --only-binary=:all: "${packages[@]}" ||
		fail "pip could not install ${packages[*]} (its message is above)"
	echo "${packages[*]}" >"$venv/ready"
fi

"$venv/bin/python" scripts/audio/convert.py "$tmp/formats"
AUDIO_REFERENCES="$tmp/formats" go test -count=1 -run '^TestFormats$' "$@" ./host/data/dataset
