#!/usr/bin/env bash
# test-hostile.sh [--all] [FLAG...]: feeds hostile variants of the product's own files to the program: every 8th, or all of
# them. scripts/hostile says what is asked of the program, python3 scripts/hostile --help what the flags are.
set -euo pipefail
cd "$(dirname "$0")/.."
every=(--every 8)
[ "${1:-}" != --all ] || { every=(); shift; }
exec python3 scripts/hostile "${every[@]}" "$@"
