#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of both modules for TIME, one after the other. Failing inputs are written to testdata/fuzz
# of the package, where the normal tests repeat them.
# By default Go minimizes each new input for up to a minute, which would take all of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
env=$(scripts/cgo-env.sh)
eval "$env"
for folder in $(git grep -lE '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u); do
  module=. # go test fuzzes packages of the module of its folder
  case $folder in shared/*) module=shared ;; esac
  pkg=./${folder#shared/}
  for target in $(go -C $module test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
    echo "== $folder $target"
    go -C $module test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-1m}" -fuzzminimizetime 50x "$pkg"
  done
done
