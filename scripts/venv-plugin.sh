#!/usr/bin/env bash
# Creates .cache/venv-plugin, the Python environment for the plugin in plugins/testdata/python and for the tests of the Python SDK,
# with the SDK of this checkout.
#
#   scripts/venv-plugin.sh
#
# A complete environment is kept, without network access; only the SDK is installed again where its files have changed. Nothing is
# written outside .cache in the repository and a temporary folder.
set -euo pipefail

packages=(grpcio==1.85.1 protobuf==7.36.2 numpy==2.4.6 typing-extensions==4.16.0)
tools=(setuptools==84.2.1 pytest==9.2.0 soundfile==0.14.0 soxr==1.1.0)

fail() {
	echo "venv-plugin: $*" >&2
	exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.cache/venv-plugin sdk=$root/shared/python
mkdir -p "$root/.cache"
exec 9>"$root/.cache/venv-plugin.lock"
flock 9 # tests of several packages may begin at once

# Write nothing below HOME: no pip cache, no version check, and a folder for rustup, because pip runs "rustc --version" for its
# user agent.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$tmp/rustup"

if [ "$(cat "$venv/ready" 2>/dev/null)" != "${packages[*]}" ] || ! [ -x "$venv/bin/python" ]; then
	command -v python3 >/dev/null || fail "python3 is missing: install Python 3.11 or later"
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
		fail "$(command -v python3) is $(python3 --version): numpy needs Python 3.11 or later"
	# The paths in an environment are absolute, so it is created in its final place. `ready` is written last.
	python3 -m venv --clear "$venv" || fail "python3 -m venv failed: install the venv module (python3-venv on Debian)"
	"$venv/bin/python" -m pip install --quiet --only-binary=:all: "${packages[@]}" ||
		fail "pip could not install ${packages[*]} (its message is above)"
	echo "${packages[*]}" >"$venv/ready"
	echo "venv-plugin: ${packages[*]} in $venv" >&2
fi
if [ "$(cat "$venv/tools" 2>/dev/null)" != "${tools[*]}" ]; then
	"$venv/bin/python" -m pip install --quiet --only-binary=:all: "${tools[@]}" ||
		fail "pip could not install ${tools[*]} (its message is above)"
	echo "${tools[*]}" >"$venv/tools"
fi

# The SDK, built from a copy: setuptools writes beside the sources.
sum=$(cd "$sdk" && cat pyproject.toml README.md xtts_plugin/*.py | sha256sum)
if [ "$(cat "$venv/sdk" 2>/dev/null)" != "$sum" ]; then
	mkdir "$tmp/sdk"
	cp -rL "$sdk/pyproject.toml" "$sdk/README.md" "$sdk/LICENSE" "$sdk/xtts_plugin" "$tmp/sdk"
	"$venv/bin/python" -m pip install --quiet --no-index --no-deps --no-build-isolation --force-reinstall "$tmp/sdk" ||
		fail "pip could not install shared/python (its message is above)"
	echo "$sum" >"$venv/sdk"
fi
