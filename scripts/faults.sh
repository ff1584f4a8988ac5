#!/usr/bin/env bash
# Makes one operation on files of one place in the code fail, one place after the other, in a run with evaluations, checkpoints, a
# broken clip and a resume; then continues it with --resume-or-start. The weights and the broken clips must be those of an
# undisturbed run, or the error must name the file (docs/torture.md, "Faults of files").
#   scripts/faults.sh            all places, each with EIO once
#   scripts/faults.sh 10         every n-th of them, so that 10 are tried
#   ERROR=ENOSPC TIMES=always scripts/faults.sh
set -euo pipefail
cd "$(dirname "$0")/.."
env=$(scripts/cgo-env.sh)
eval "$env"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$PWD/bin/xtts-host-faults # next to the libraries
go build -tags faults -o "$program" ./cmd/xtts-host
python3 scripts/findings/lib/clips.py "$work/data" 13 1
head -c 60 "$work/data/wavs/clip00005.wav" >"$work/short" && mv "$work/short" "$work/data/wavs/clip00005.wav"
export XDG_CACHE_HOME=$PWD/.cache XTTS_HOST_DISK_WAIT=1

# go_on FOLDER STEPS: starts the run, or continues it.
go_on() {
  "$program" --plugins plugins --train-data "$work/data" --val-data "$work/data" --batch-size 4 --eval-every 3 --checkpoint-every 2 --keep-last 2 \
    --max-quarantine 3 --schedule constant --cache-dir "$1.cache" --resume-or-start "$1" --max-steps "$2" >"$1.log" 2>&1
}
# both FOLDER: 4 steps, then 4 more.
both() { go_on "$1" 4 && go_on "$1" 8; }
results() { (cd "$1" && sha256sum checkpoints/step-000008/params.safetensors && sort quarantine.jsonl | sha256sum); }

XTTS_FAULTS_LIST=$work/list both "$work/want" || { cat "$work/want.log"; exit 1; }
want=$(results "$work/want")
mapfile -t sites < <(sort -u "$work/list")
places=${1:-0}
every=$((places > 0 ? (${#sites[@]} + places - 1) / places : 1))
tried=0 same=0 failed=0
for ((i = 0; i < ${#sites[@]}; i += every)); do
  at="${sites[i]} ${ERROR:-EIO}${TIMES:+ $TIMES}" run=$work/run$i said=
  XTTS_FAULTS_AT=$at both "$run" || said=$(grep -E '^error: ' "$run.log" || true)
  tried=$((tried + 1))
  if [ -z "$said" ] && [ -d "$run" ] && [ "$(results "$run" 2>&1)" = "$want" ]; then same=$((same + 1)); rm -rf "$run"*; continue; fi
  if ! grep -qE "(${ERROR:-EIO}|input/output error|no space|permission denied|no locks)" <<<"$said"; then
    failed=$((failed + 1)); printf 'FAIL %s: ends with another result, or an error that does not name the fault: %s\n' "$at" "$said"
  elif ! both "$run" || [ "$(results "$run" 2>&1)" != "$want" ]; then
    failed=$((failed + 1)); printf 'FAIL %s: said %s, and the run cannot be continued to the same result\n' "$at" "$said"; tail -3 "$run.log"
  fi
  rm -rf "$run"*
done
echo "${#sites[@]} places and operations; $tried tried with ${ERROR:-EIO} ${TIMES:-once}: $same without an effect, $((tried - same - failed)) ended with an error and continued, $failed failed"
[ $failed = 0 ]
