#!/usr/bin/env bash
# Starts two ranks with srun of a Slurm on this machine, whose daemons the script starts and ends: the losses are those of ranks with
# plain variables. Then cancels a job of sbatch, and kills a rank. It needs apt of Debian or Ubuntu: the packages are unpacked below
# .cache and nothing is installed. It runs as root, as slurmd does. docs/launchers.md describes the launchers, docs/operate.md the
# job that is queued again.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "error: scripts/test-slurm.sh is for root: it starts slurmd" >&2; exit 1; }
. scripts/launchers/lib.sh

slurm=$root/.cache/slurm
if [ ! -e "$slurm/ready" ]; then
	rm -rf "$slurm" && mkdir -p "$slurm/packages"
	apt-get update -qq || fail "apt-get update failed (its message is above)"
	packages=$(apt-get install --simulate --no-install-recommends slurmctld slurmd slurm-client munge | awk '/^Inst/ {print $2}')
	(cd "$slurm/packages" && apt-get download $packages) >"$work/apt.log" 2>&1 || fail "apt-get download: $(cat "$work/apt.log")"
	for package in "$slurm"/packages/*.deb; do dpkg -x "$package" "$slurm/root"; done
	rm -rf "$slurm/packages"
	touch "$slurm/ready"
fi
libraries=$(dirname "$(find "$slurm/root" -path '*/slurm-wlm/libslurmfull.so')")
export LD_LIBRARY_PATH=$libraries:$(dirname "$libraries") PATH=$slurm/root/usr/bin:$slurm/root/usr/sbin:$PATH

etc=$work/slurm port=$((20000 + $$ % 3000 * 2))
mkdir -p "$etc"/{munge,state,spool}
chmod 755 "$work" "$etc" && chmod 711 "$etc/munge" # munge refuses a folder that others can write to
head -c 128 /dev/urandom >"$etc/munge.key" && chmod 600 "$etc/munge.key"
cat >"$etc/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmUser=root
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$etc/munge/socket
PluginDir=$libraries
StateSaveLocation=$etc/state
SlurmdSpoolDir=$etc/spool
SlurmctldPidFile=$etc/slurmctld.pid
SlurmdPidFile=$etc/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=$(hostname) NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=ALL Default=YES
CONF
export SLURM_CONF=$etc/slurm.conf
daemons=()
end_daemons() {
	local pid
	scancel --user=root 2>/dev/null || true
	for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
	finish
}
trap end_daemons EXIT
# daemon COMMAND...: starts one in the foreground of a process of its own.
daemon() { "$@" >"$etc/${1##*/}.out" 2>&1 & daemons+=($!); }
daemon munged --foreground --force --key-file="$etc/munge.key" --socket="$etc/munge/socket" --pid-file="$etc/munge/pid" \
	--seed-file="$etc/munge/seed" --log-file="$etc/munge/log"
for _ in $(seq 100); do [ ! -S "$etc/munge/socket" ] || break; sleep 0.1; done
daemon slurmctld-wlm -D
daemon slurmd-wlm -D -d "$slurm/root/usr/sbin/slurmstepd-wlm"
for _ in $(seq 100); do sinfo --noheader 2>/dev/null | grep -q idle && break; sleep 0.2; done
sinfo --noheader | grep -q idle || fail "Slurm does not start: $(tail -n 5 "$etc"/*.out)"

by_hand "$work/plain" --max-steps 12
export MASTER_PORT=26${$: -3}
timeout 60 srun --ntasks 2 "${run[@]}" --run-dir "$work/srun" --max-steps 12 >"$work/srun.log" 2>&1 ||
	fail "srun: status $?: $(tail -n 20 "$work/srun.log")"
same srun "$work/srun"
ended srun

# A job that is canceled: its ranks get SIGTERM, and SIGKILL half a minute later.
job=$work/job
{
	echo '#!/bin/bash'
	printf '%q ' exec srun "${run[@]}" --run-dir "$job" --max-steps 1000000
} >"$work/job.sh"
id=$(sbatch --parsable --ntasks 2 --output "$job.log" --chdir "$work" "$work/job.sh")
training "$job"
scancel "$id"
ended "scancel"
saved "scancel" "$job"
[ "$(grep -c '^interrupted' "$job.log")" = 1 ] || fail "scancel: $(cat "$job.log")"

# SIGTERM for the ranks alone, as --signal sends it: srun has their status.
asked=$work/asked
timeout 120 srun --ntasks 2 "${run[@]}" --run-dir "$asked" --max-steps 1000000 >"$asked.log" 2>&1 & pid=$!
training "$asked"
scancel --signal=TERM "$(squeue --noheader --format %i)"
got=0
wait $pid || got=$?
[ $got = 130 ] || fail "scancel --signal=TERM: status $got: $(tail -n 10 "$asked.log")"
ended "scancel --signal=TERM"
saved "scancel --signal=TERM" "$asked"

killed=$work/killed
timeout 120 srun --ntasks 2 "${run[@]}" --run-dir "$killed" --max-steps 1000000 >"$killed.log" 2>&1 & pid=$!
training "$killed"
for rank in $(left); do
	if tr '\0' '\n' <"/proc/$rank/environ" | grep -qx SLURM_PROCID=1; then kill -9 "$rank"; break; fi
done
got=0
wait $pid || got=$?
[ $got != 0 ] || fail "a rank is killed: status 0"
ended "a rank is killed"
saved "a rank is killed" "$killed"
# docs/operate/xtts-host.sbatch, without what this machine does not have: a job that gets SIGTERM, as --signal sends it, is
# queued again and continues. One that scancel ends, and one with a usage error, are not.
mkdir "$work/runs"
sed 's/ --cpus-per-task=.*//' docs/operate/xtts-host.sbatch >"$work/runs/operate.sbatch"
operate() {
	XTTS_PROGRAM=$root/bin/xtts-host XTTS_RUNS=$work/runs sbatch --parsable --output "$work/runs/$1.log" \
		"$work/runs/operate.sbatch" "$@"
}
of_job() { scontrol show job "$1" | grep -oP "(?<= |^)$2=\K\S+"; }
# reaches ID STATE: waits until the job has the state.
reaches() {
	local i
	for i in $(seq 600); do
		[ "$(of_job "$1" JobState)" != "$2" ] || return 0
		sleep 0.5
	done
	fail "the job is not $2: $(scontrol show job "$1"; cat "$work"/runs/*.log)"
}
id=$(operate first "${run[@]:3}" --max-steps 1000000)
training "$work/runs/first"
scancel --signal=TERM "$id"
reaches "$id" PENDING
saved "sbatch, SIGTERM" "$work/runs/first"
before=$(wc -l <"$work/runs/first/metrics.jsonl")
scontrol update job "$id" StartTime=now # Slurm waits two minutes
reaches "$id" RUNNING
for _ in $(seq 300); do [ "$(wc -l <"$work/runs/first/metrics.jsonl")" -le "$before" ] || break; sleep 0.1; done
grep -q '^resumed  ' "$work/runs/first.log" || fail "sbatch: the job does not continue: $(cat "$work/runs/first.log")"
scancel "$id"
reaches "$id" CANCELLED
wrong=$(operate wrong --no-such-flag)
reaches "$wrong" FAILED
[ "$(of_job "$wrong" Restarts) $(of_job "$wrong" ExitCode)" = "0 2:0" ] || fail "sbatch, a usage error: $(scontrol show job "$wrong")"
reaches "$id" CANCELLED
ended "sbatch"
echo "srun of Slurm $(sinfo --version | cut -d' ' -f2) has the losses of plain variables; nothing is left after scancel and after a kill (status $got);" \
	"a job of docs/operate that gets SIGTERM is queued again and continues"
