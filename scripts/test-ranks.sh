#!/usr/bin/env bash
# Disturbs runs of two to four processes on this machine, and starts them again: the results must be those of an undisturbed run
# (docs/torture.md, "Several ranks").
#   scripts/test-ranks.sh            ten rounds, one for each fault
#   scripts/test-ranks.sh --all      sixty rounds
#   scripts/test-ranks.sh SEED N     one round again
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x bin/xtts-host ] || { echo "error: bin/xtts-host is missing; build it by: make build" >&2; exit 1; }

env=$(scripts/cgo-env.sh)
eval "$env"
case "${1:-}" in
"") args=(-ranks 10) ;;
--all) args=(-ranks 60 -seed "$(date +%j)") ;; # other rounds every day
*) args=(-ranks $(($2 + 1)) -seed "$1" -case "$2") ;;
esac
exec go run ./scripts/torture "${args[@]}"
