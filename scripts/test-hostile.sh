#!/usr/bin/env bash
# test-hostile.sh [--all] [FLAG...]: runs the program on malformed variants of its files: every 16th variant, or all of them.
# scripts/hostile/__main__.py describes the requirements; python3 scripts/hostile --help lists the flags.
set -euo pipefail
cd "$(dirname "$0")/.."
every=(--every 16)
[ "${1:-}" != --all ] || { every=(); shift; }
exec python3 scripts/hostile "${every[@]}" "$@"
