#!/usr/bin/env bash
# Runs docs/operate/xtts-host@.service by a systemd of its own: it trains, shows its step, continues after kill -9 and after a
# watchdog, saves when it is stopped, and stays down after a usage error and at its end. systemd-analyze judges the unit.
# docs/operate.md describes it.
#
# The systemd is that of this machine, as the first process of namespaces for processes, mounts and control groups. It sees
# the file system of this machine with a temporary layer on top, so nothing of it is changed. It is for root, with the package
# systemd of version 252 or later, and a control group of version 2.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "test-systemd: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "it is for root: it starts a systemd"
[ -x bin/xtts-host ] || fail "bin/xtts-host is missing; build it by: make build"
manager=/lib/systemd/systemd
[ -x $manager ] || fail "$manager is missing: install the package systemd"

if [ -z "${TEST_SYSTEMD:-}" ]; then
	hierarchy=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
	[ -n "$hierarchy" ] || fail "no control groups of version 2 are mounted"
	work=$(mktemp -d) group=$hierarchy/test-systemd-$$
	mkdir "$group"
	trap 'find "$group" -depth -type d -exec rmdir {} \; ; rm -rf "$work"' EXIT
	mount -t tmpfs none "$work" && trap 'find "$group" -depth -type d -exec rmdir {} \; ; umount "$work"; rm -rf "$work"' EXIT
	status=0
	(
		echo $BASHPID >"$group/cgroup.procs"
		TEST_SYSTEMD=$work exec unshare --mount --propagation private --pid --fork --kill-child --cgroup --ipc --uts "$0"
	) >"$work/log" 2>&1 || status=$?
	[ $status = 100 ] || fail "status $status, not 100: $(tail -n 40 "$work/log" "$work/said")"
	cat "$work/said"
	exit
fi

work=$TEST_SYSTEMD top=$TEST_SYSTEMD/top
mkdir "$work"/{upper,layer,top}
mount -t overlay none -o "lowerdir=/,upperdir=$work/upper,workdir=$work/layer" "$top"
mount -t proc proc "$top/proc"
mount -t sysfs -o ro sysfs "$top/sys"
mount -t cgroup2 none "$top/sys/fs/cgroup"
mount --rbind /dev "$top/dev"
for folder in run tmp; do mount -t tmpfs none "$top/$folder"; done
mkdir "$top/run/said" && touch "$work/said" && mount --bind "$work" "$top/run/said"

# What docs/operate.md says to install, of this checkout.
rm -rf "$top"/etc/systemd/system/* "$top/opt/xtts-host" "$top/var/lib/xtts-host" "$top/var/cache/xtts-host"
mkdir -p "$top"/opt/xtts-host/{bin,lib} "$top"/opt/xtts-host/plugins/features "$top"/etc/{xtts-host,sysusers.d}
cp bin/xtts-host "$top/opt/xtts-host/bin"
cp .cache/ort/1.29.0/libonnxruntime.so.1.29.0 "$top/opt/xtts-host/lib"
cp plugins/features/{plugin.json,plugin.sum,plugin.sources,features_linux_*} "$top/opt/xtts-host/plugins/features"
cp docs/operate/xtts-host@.service "$top/etc/systemd/system"
cp docs/operate/xtts-host.sysusers "$top/etc/sysusers.d/xtts-host.conf"
chroot "$top" systemd-sysusers
chroot "$top" systemd-analyze verify /etc/systemd/system/xtts-host@.service
chroot "$top" systemd-analyze security --offline=true --threshold=22 --no-pager /etc/systemd/system/xtts-host@.service \
	>"$work/security" || { cat "$work/security"; exit 1; }

# Settings of the runs of the test. The times of the unit are shorter there, and a device must be in reach, as a GPU is: of
# those of this machine, /dev/fuse, which is not one that each service may open.
settings=$(printf 'batch_size: 8\nschedule: constant\nspoken_clips: 0\nthreads: 1\nlog_every: 0\n')
printf '%s\nmax_steps: 1000000\ncheckpoint_every: 5\n' "$settings" >"$top/etc/xtts-host/long.yaml"
printf '%s\nmax_steps: 2\n' "$settings" >"$top/etc/xtts-host/short.yaml"
printf '%s\nbatch_sise: 8\n' "$settings" >"$top/etc/xtts-host/wrong.yaml"
mkdir "$top/etc/systemd/system/xtts-host@.service.d"
printf '[Service]\nRestartSec=1\nWatchdogSec=5\nStandardOutput=append:/run/said/%%i\nStandardError=inherit\n' >"$top/etc/systemd/system/xtts-host@.service.d/test.conf"
[ ! -e /dev/fuse ] || printf 'ExecStartPre=+/bin/sh -c "exec 3<>/dev/fuse"\n' >>"$top/etc/systemd/system/xtts-host@.service.d/test.conf"
cp scripts/systemd/inside.sh "$top/run/said/inside.sh"
cat >"$top/etc/systemd/system/test.service" <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
TimeoutStartSec=300
ExecStart=/bin/bash /run/said/inside.sh
StandardOutput=append:/run/said/said
StandardError=inherit
UNIT
export container=test
exec chroot "$top" $manager --unit=test.service --log-target=console --show-status=no
