#!/usr/bin/env bash
# Starts two ranks with torchrun, in the environment of the exporter's tests (scripts/xtts_export/test.sh): they have the losses of
# ranks with plain variables. Then ends torchrun by a signal, and kills a rank. docs/launchers.md describes the launchers.
set -euo pipefail
cd "$(dirname "$0")/.."
torchrun=$PWD/.cache/venv-export/bin/torchrun
[ -x "$torchrun" ] || { echo "error: $torchrun is missing"; echo "hint: scripts/xtts_export/test.sh makes it"; exit 1; } >&2
. scripts/launchers/lib.sh

port=27${$: -3}
launch=("$torchrun" --no-python --nproc-per-node 2 --master-addr 127.0.0.1 --master-port "$port")
by_hand "$work/plain" --max-steps 12
"${launch[@]}" "${run[@]}" --run-dir "$work/torchrun" --max-steps 12 >"$work/torchrun.log" 2>&1 ||
	fail "status $?: $(tail -n 20 "$work/torchrun.log")"
same torchrun "$work/torchrun"
ended torchrun

for what in TERM INT kill; do
	folder=$work/$what
	setsid "${launch[@]}" "${run[@]}" --run-dir "$folder" --max-steps 1000000 >"$folder.log" 2>&1 & pid=$!
	training "$folder"
	if [ $what = kill ]; then
		for rank in $(left); do
			if tr '\0' '\n' <"/proc/$rank/environ" | grep -qx RANK=1; then kill -9 "$rank"; break; fi
		done
	else
		kill -s $what $pid
	fi
	got=0
	wait $pid || got=$?
	[ $got != 0 ] || fail "$what: status 0"
	ended "$what"
	saved "$what" "$folder"
done
grep -q 'the run ends: rank 1 (.*) ended$' "$work/kill.log" || fail "kill: $(tail -n 20 "$work/kill.log")"
echo "torchrun of PyTorch has the losses of plain variables; nothing is left after a signal or a kill, and the last step is saved"
