#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the module for that long, one after the other. Findings go into the packages'
# testdata/fuzz, where the normal tests repeat them.
set -euo pipefail
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
    echo "== $pkg $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-1m}" "$pkg"
  done
done
