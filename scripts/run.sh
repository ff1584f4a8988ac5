#!/usr/bin/env bash
# What `make run` does: names what the machine lacks, fetches and builds, then trains the embedded model on the embedded
# sample. The two parts are timed apart.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { command -v "$1" >/dev/null || { echo "error: $1 is missing: install $2" >&2; exit 1; }; }
need go "Go 1.26 or later"
need cc "a C compiler (gcc)"
need python3 "Python 3"
python3 -m pip --version >/dev/null 2>&1 || { echo "error: pip is missing: install Python's pip (python3-pip)" >&2; exit 1; }

start=$(date +%s)
make --no-print-directory build
built=$(date +%s)
bin/xtts-host --plugins ./plugins --device cpu --batch-size 8 --max-steps "${STEPS:-240}" --eval-every 80 --log-every 20 --cache-dir .cache/xtts-host
ended=$(date +%s)
echo
echo "fetch and build: $((built - start)) s, run: $((ended - built)) s"
