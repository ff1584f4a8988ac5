#!/usr/bin/env bash
# `make run`: fetches and builds, then trains the embedded model on the embedded sample, and prints the time of both parts.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need.sh
start=$(date +%s)
make --no-print-directory build
built=$(date +%s)
bin/xtts-host --plugins ./plugins --batch-size 8 --max-steps "${STEPS:-240}" --eval-every 80 --log-every 20 --cache-dir .cache/xtts-host
ended=$(date +%s)
echo
echo "fetch and build: $((built - start)) s, run: $((ended - built)) s"
