# Sourced by the scripts that test launchers: two ranks of a small run on this machine, and what they must have done.
# It sets root, work (a temporary folder, removed at the end) and run (an array, the program with its flags).
root=$PWD work=$(mktemp -d) test=${0##*/}
[ -x bin/xtts-host ] || { echo "error: bin/xtts-host is missing; build it by: make build" >&2; exit 1; }

# Every process of the test has the mark; plugins inherit it by its name.
mark=XTTS_PLUGIN_TEST_LAUNCHER=$test-$$
export "$mark" XTTS_RANKS_SECRET=0123456789abcdef XTTS_HOST_DEVICE=cpu XTTS_HOST_CACHE_DIR=$root/.cache/xtts-host
export HOME=$work/home XDG_CACHE_HOME=$work/cache
mkdir -p "$HOME" "$XDG_CACHE_HOME"
run=("$root/bin/xtts-host" --plugins "$root/plugins" --graph "$root/ortgraphs/testdata/pico" --batch-size 4 --buffer-size 8
	--threads 1 --log-every 0 --eval-every 5 --model-start-delay 0)

# left prints the ids of the processes of the test that train.
left() {
	local environment
	for environment in /proc/[0-9]*/environ; do
		local process=${environment%/environ}
		if tr '\0' '\n' 2>/dev/null <"$environment" | grep -qxF "$mark" &&
			[[ $(readlink "$process/exe") == "$root"/* ]]; then
			echo "${process#/proc/}"
		fi
	done 2>/dev/null
}

# finish ends what is left and removes the folder. A script that starts services calls it in a trap of its own.
finish() {
	local rest
	rest=$(left)
	[ -z "$rest" ] || kill -9 $rest
	rm -rf "$work"
}
trap finish EXIT

fail() {
	echo "$test: $*" >&2
	exit 1
}

# ended NAME: no process of the test trains any more.
ended() {
	local i
	for i in $(seq 50); do
		[ -n "$(left)" ] || return 0
		sleep 0.1
	done
	fail "$1: still running: $(ps -o pid,args -p "$(left | paste -sd,)")"
}

# losses FOLDER prints the lines of metrics.jsonl without times.
losses() {
	python3 - "$1/metrics.jsonl" <<'PYTHON'
import json
import sys

for line in open(sys.argv[1]):
    print({k: v for k, v in json.loads(line).items() if not k.endswith("_ms")})
PYTHON
}

# same NAME FOLDER: the run of two ranks has the losses of the one in $work/plain, and so has its rank 1.
same() {
	for lines in "$2" "$2/ranks/1"; do
		cmp <(losses "$work/plain") <(losses "$lines") || fail "$1: $lines has other losses"
	done
}

# training FOLDER: waits until the run has made five steps.
training() {
	local i
	for i in $(seq 300); do
		[ "$(cat "$1/metrics.jsonl" 2>/dev/null | wc -l)" -lt 5 ] || return 0
		sleep 0.1
	done
	fail "$1 does not train: $(cat "$1.log")"
}

# saved NAME FOLDER: the last step has a checkpoint.
saved() {
	local last
	last=$(wc -l <"$2/metrics.jsonl")
	[ -d "$2/checkpoints/$(printf 'step-%06d' "$last")" ] || fail "$1: step $last is not saved: $(ls "$2/checkpoints"; cat "$2.log")"
}

# by_hand FOLDER FLAG...: two ranks with plain variables.
by_hand() {
	local folder=$1 status=0 other
	export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29${$: -3}
	RANK=1 LOCAL_RANK=1 "${run[@]}" --run-dir "$@" >"$folder.1.log" 2>&1 & other=$!
	RANK=0 LOCAL_RANK=0 "${run[@]}" --run-dir "$@" >"$folder.log" 2>&1 || status=$?
	wait $other || status=$?
	unset WORLD_SIZE MASTER_ADDR MASTER_PORT
	[ $status = 0 ] || fail "plain variables: status $status: $(tail -n 5 "$folder.log" "$folder.1.log")"
}
