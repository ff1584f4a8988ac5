#!/usr/bin/env bash
# profile.sh: measures how right `xtts-host profile` is, on runs that are slow on purpose because something in them sleeps:
# whether it names the cause, what it predicts beside what its advice gives, and --apply beside a grid (docs/profile.md).
set -euo pipefail
cd "$(dirname "$0")/.."
env=$(scripts/cgo-env.sh)
eval "$env"
exec go test -vet=off -count=1 -timeout 60m -run 'Measured' -v ./host/command/profile -measure "$@"
