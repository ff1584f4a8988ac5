# Run by scripts/test-systemd.sh as a service of the systemd under test. Ends it with status 100 if all is as it should be.
set -uo pipefail
runs=/var/lib/xtts-host/runs output=/run/said

fail() {
	echo "$*"
	systemctl status --no-pager --lines=0 'xtts-host@*'
	systemctl exit 101
	exit 1
}
property() { systemctl show --value --property "$2" "xtts-host@$1"; }
steps() { cat "$runs/$1/metrics.jsonl" 2>/dev/null | wc -l; }

# waits WHAT COMMAND...: until the command succeeds.
waits() {
	for _ in $(seq 600); do
		! "${@:2}" || return 0
		sleep 0.1
	done
	fail "$1: not within a minute"
}
is() { [ "$(property "$1" "$2")" = "$3" ]; }
more() { [ "$(steps "$1")" -ge "$2" ]; }
status_says() { [[ $(property "$1" StatusText) == "$2"* ]]; }

systemctl start xtts-host@long || fail "start: status $?"
waits "it does not train" more long 12
waits "no step in the status" status_says long "training, step "

# A process that is killed continues from its last checkpoint.
systemctl kill --kill-whom=main --signal=KILL xtts-host@long
waits "it is not started again" is long NRestarts 1
waits "it does not continue" more long 20
grep -q '^resumed  ' "$output/long" || fail "it begins again: $(cat "$output/long")"

# What the unit takes away, and what it must not.
main=$(property long MainPID)
[ "$(stat -c %U "/proc/$main")" = xtts-host ] || fail "the user is $(stat -c %U "/proc/$main")"
for line in 'NoNewPrivs:	1' 'Seccomp:	2' 'CapBnd:	0000000000000000'; do
	grep -qxF "$line" "/proc/$main/status" || fail "/proc/$main/status has no line $line"
done
grep -q ' /etc ro,\| / / ro,' "/proc/$main/mountinfo" || fail "the file system can be written: $(cat "/proc/$main/mountinfo")"

# The plugins are confined, too.
grep -q '^  sandbox  *auto: confines files, network, system calls, ' "$output/long" || fail "no sandbox: $(cat "$output/long")"

# A process that hangs gives no signal to the watchdog, which is of 5 s here.
kill -STOP "$main"
waits "the watchdog does not end it" is long NRestarts 2
before=$(steps long)
waits "it does not continue" more long $((before + 5))

# stop: it saves the last step, and that is no failure. (systemd forgets a unit that has ended well.)
systemctl stop xtts-host@long
is long ActiveState inactive && grep -q '^interrupted' "$output/long" || fail "stop: $(tail -n 5 "$output/long")"
last=$runs/long/checkpoints/$(printf 'step-%06d' "$(steps long)")
[ -d "$last" ] || fail "stop: $last is missing: $(ls "$runs/long/checkpoints")"
! pgrep -u xtts-host >/dev/null || fail "stop: left is $(pgrep -u xtts-host -a)"

# The end of a run, and a start after it.
said() { [ "$(grep -c "$2" "$output/$1")" = "$3" ]; }
for _ in 1 2; do
	systemctl start xtts-host@short
	waits "it does not end" is short ActiveState inactive
done
sleep 2
is short ActiveState inactive && said short 'done after 2 steps' 1 && said short 'nothing to do' 1 ||
	fail "the end: $(cat "$output/short")"

# A usage error is the same after a restart.
systemctl start xtts-host@wrong
waits "a usage error" is wrong ActiveState failed
sleep 2
is wrong ActiveState failed && is wrong ExecMainStatus 2 && is wrong NRestarts 0 ||
	fail "a usage error: status $(property wrong ExecMainStatus), started again $(property wrong NRestarts) times"

echo "systemd $(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p') runs the unit: it continues after kill -9 and" \
	"a watchdog, saves when it is stopped, and stays down at its end and after a usage error"
systemctl exit 100
