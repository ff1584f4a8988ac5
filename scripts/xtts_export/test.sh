#!/usr/bin/env bash
# The exporter's tests, in a PyTorch environment of their own (5.5 GB) below .cache/. Nothing is written to HOME.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=.cache/venv-export
want=$(sha256sum scripts/xtts_export/requirements.txt)
export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 ORT_DISABLE_TELEMETRY=1 HOME="$PWD/.cache/home"
mkdir -p "$HOME"
if [ "$(cat $venv/.requirements 2>/dev/null)" != "$want" ]; then
  python3 -m venv --clear $venv
  $venv/bin/python -m pip install --quiet -r scripts/xtts_export/requirements.txt
  echo "$want" > $venv/.requirements
fi
cd scripts
# Tracing takes one core, so the suite of modules and everything else run side by side.
export OMP_NUM_THREADS=1
tests() { ../$venv/bin/python -m pytest -p no:cacheprovider -q "$@"; }
suite=$(mktemp)
trap 'rm -f "$suite"' EXIT
tests xtts_export/suite >"$suite" 2>&1 & pid=$!
status=0
tests xtts_export --ignore xtts_export/suite || status=$?
wait $pid || status=$?
cat "$suite"
exit $status
