#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the module for that long, one after the other. Findings go into the packages'
# testdata/fuzz, where the normal tests repeat them.
# By default Go takes up to a minute to shorten each input that reaches new code: all of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
    echo "== $pkg $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-1m}" -fuzzminimizetime 50x "$pkg"
  done
done
