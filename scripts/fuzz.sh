#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the module for TIME, one after the other. Failing inputs are written to testdata/fuzz
# of the package, where the normal tests repeat them.
# By default Go minimizes each new input for up to a minute, which would take all of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
env=$(scripts/cgo-env.sh)
eval "$env"
folders=$(git grep -lE '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u)
for pkg in $(sed 's|^|github.com/xtts-host/xtts-host/|' <<<"$folders"); do
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
    echo "== $pkg $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-1m}" -fuzzminimizetime 50x "$pkg"
  done
done
