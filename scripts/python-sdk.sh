#!/usr/bin/env bash
# Builds the wheel of the Python SDK into .cache/python-sdk, installs it into a new environment as a plugin author does, with what
# it depends on, and has the host test a plugin that runs there.
#
#   scripts/python-sdk.sh [--lowest]
#
# --lowest installs the oldest versions that the SDK names. PYTHON is the interpreter, python3 if it is not set.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x bin/xtts-host ] || { echo "error: bin/xtts-host is missing; build it by: make build" >&2; exit 1; }

scripts/venv-plugin.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$tmp/rustup" SOURCE_DATE_EPOCH=315532800

# From a copy: setuptools writes beside the sources.
mkdir "$tmp/sdk"
cp -rL shared/python/{pyproject.toml,README.md,LICENSE,xtts_plugin} "$tmp/sdk"
rm -rf "$tmp/sdk/xtts_plugin/__pycache__" .cache/python-sdk
.cache/venv-plugin/bin/python -m pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir .cache/python-sdk "$tmp/sdk"
wheel=$(echo .cache/python-sdk/*.whl)

versions=()
if [ "${1:-}" = --lowest ]; then
	mapfile -t versions < <(sed -n 's/^dependencies = //p' shared/python/pyproject.toml | grep -o '[a-z]*>=[0-9.]*' | sed 's/>=/==/')
fi
"${PYTHON:-python3}" -m venv "$tmp/venv"
"$tmp/venv/bin/python" -m pip install --quiet --only-binary=:all: "$wheel" ${versions[@]+"${versions[@]}"}
PATH=$tmp/venv/bin:$PATH bin/xtts-host plugins test --cache-dir "$tmp/cache" plugins/testdata/python/gain --config probability=0.5 \
	>"$tmp/rules" || { cat "$tmp/rules"; exit 1; }
echo "$wheel: $("$tmp/venv/bin/python" -V), $("$tmp/venv/bin/python" -m pip list --format=freeze | grep -E '^(grpcio|numpy|protobuf)=' |
	tr '\n' ' ')- $(tail -1 "$tmp/rules")"
