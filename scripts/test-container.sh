#!/usr/bin/env bash
# Builds docs/operate/Containerfile with podman and runs the image: as a user that is not root, without capabilities, with a
# root file system that cannot be written, and without a network. It must train, continue, save a checkpoint after SIGTERM,
# and refuse what is wrong with its status. docs/operate.md describes the image.
#
#   scripts/test-container.sh             with the archive of a release, which it makes
#   scripts/test-container.sh ARCHIVE     with this one
#
# Podman and what it needs are Debian's packages, unpacked below .cache; nothing is installed. In place of the pinned base
# image, which a registry has, debootstrap makes a minimal system of the release of this machine. It is for root, on Debian:
# the script sees the packages in a mount namespace of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "test-container: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "it is for root: it mounts and starts containers"

cache=$(readlink -f .cache)/container
if [ -z "${TEST_CONTAINER:-}" ]; then
	if [ ! -e "$cache/ready" ]; then
		rm -rf "$cache" && mkdir -p "$cache/packages" "$cache/root"
		apt-get update -qq || fail "apt-get update failed (its message is above)"
		packages=$(apt-get install --simulate --no-install-recommends podman crun debootstrap | awk '/^Inst/ {print $2}')
		(cd "$cache/packages" && apt-get download $packages) >"$cache/apt.log" 2>&1 || fail "apt-get download: $(cat "$cache/apt.log")"
		for package in "$cache"/packages/*.deb; do dpkg -x "$package" "$cache/root"; done
		for folder in bin sbin lib; do # /usr has these, too
			[ ! -d "$cache/root/$folder" ] || cp -a "$cache/root/$folder/." "$cache/root/usr/$folder/"
		done
		mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Component: main' | head -n 1)
		release=$(. /etc/os-release && echo "$VERSION_CODENAME")
		DEBOOTSTRAP_DIR=$cache/root/usr/share/debootstrap "$cache/root/usr/sbin/debootstrap" --variant=minbase \
			"$release" "$cache/base" "$mirror" >"$cache/debootstrap.log" 2>&1 || fail "debootstrap: $(tail -n 5 "$cache/debootstrap.log")"
		rm -rf "$cache/packages" "$cache"/base/var/{cache/apt,lib/apt/lists}/*
		touch "$cache/ready"
	fi
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	mkdir "$work/dist"
	if [ $# = 0 ]; then DIST=$work/dist CROSS=no scripts/release.sh >"$work/release.log" 2>&1 || fail "$(tail -n 5 "$work/release.log")"
	else cp "$1" "$work/dist"; fi
	TEST_CONTAINER=$work unshare --mount --propagation private "$0"
	exit
fi

# From here on in a mount namespace, with the packages in /usr and /etc.
work=$TEST_CONTAINER
mount -t overlay none -o "lowerdir=$cache/root/usr:/usr" /usr
mount -t overlay none -o "lowerdir=$cache/root/etc:/etc" /etc
mount -t tmpfs none /run
if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then # crun refuses a mix of both versions
	umount -R /sys/fs/cgroup
	mount -t cgroup2 none /sys/fs/cgroup
fi
cat >"$work/containers.conf" <<'CONF'
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "crun"
CONF
export CONTAINERS_CONF=$work/containers.conf HOME=$work
mkdir "$work/storage" && mount -t tmpfs none "$work/storage" # its containers end with the namespace
podman() { command podman --root "$work/storage/root" --runroot /run/podman --tmpdir /run/libpod --storage-driver overlay "$@"; }

tar -C "$cache/base" -cf - . | podman import - localhost/base >"$work/log" 2>&1 || fail "podman import: $(tail -n 3 "$work/log")"
archive=$(cd "$work/dist" && ls -- *.tar.gz)
podman build --isolation chroot --network host --layers=false -f docs/operate/Containerfile -t localhost/xtts-host \
	--build-arg BASE=localhost/base --build-arg ARCHIVE="$archive" "$work/dist" >"$work/log" 2>&1 || fail "podman build: $(tail -n 9 "$work/log")"
size() { podman image inspect --format '{{.Size}}' "localhost/$1"; }
added=$((($(size xtts-host) - $(size base)) / 1000000))
[ $added -lt 200 ] || fail "the image adds $added MB to its base"

mkdir "$work/runs" "$work/cache" && chmod 755 "$work" && chown 10001:10001 "$work/runs" "$work/cache"
container=(run --network none --read-only --cap-drop all --security-opt no-new-privileges
	-v "$work/runs:/runs" -v "$work/cache:/cache")
flags=(--batch-size 8 --schedule constant --spoken-clips 0 --threads 1)

# within STATUS SAYS FLAG...: the container ends with a status and says something.
within() {
	local status=0
	podman "${container[@]}" --rm localhost/xtts-host "${@:3}" >"$work/log" 2>&1 || status=$?
	[ $status = "$1" ] || fail "${*:3}: status $status, not $1: $(tail -n 9 "$work/log")"
	grep -q -- "$2" "$work/log" || fail "${*:3}: it does not say \"$2\": $(tail -n 9 "$work/log")"
}
status=0
podman "${container[@]}" --rm --entrypoint touch localhost/xtts-host /opt/xtts-host/file >"$work/log" 2>&1 || status=$?
grep -q 'Read-only file system' "$work/log" || fail "the root file system can be written: status $status, $(cat "$work/log")"
podman "${container[@]}" --rm --entrypoint id localhost/xtts-host -u >"$work/log" && [ "$(cat "$work/log")" = 10001 ] || fail "the user is $(cat "$work/log")"
within 0 'done after 2 steps' "${flags[@]}" --max-steps 2 --resume-or-start first
within 0 'done after 4 steps' "${flags[@]}" --max-steps 4 --resume-or-start first
within 0 'nothing to do' "${flags[@]}" --max-steps 4 --resume-or-start first
within 2 'error: ' --no-such-flag

# The end of a container: SIGTERM for its first process, as podman stop, Docker and Kubernetes send it.
podman "${container[@]}" --name long localhost/xtts-host "${flags[@]}" --max-steps 1000000 --run-dir long >"$work/log" 2>&1 & client=$!
for _ in $(seq 600); do
	[ "$(cat "$work/runs/long/metrics.jsonl" 2>/dev/null | wc -l)" -lt 5 ] || break
	sleep 0.1
done
podman stop --time 120 long >/dev/null
status=0
wait $client || status=$?
[ $status = 130 ] || fail "podman stop: status $status, not 130: $(tail -n 9 "$work/log")"
last=$(wc -l <"$work/runs/long/metrics.jsonl")
[ -d "$work/runs/long/checkpoints/$(printf 'step-%06d' "$last")" ] || fail "podman stop: step $last is not saved: $(ls "$work/runs/long/checkpoints")"
others=$(find "$work/runs" "$work/cache" ! -user 10001)
[ -z "$others" ] || fail "files of another user: $others"
echo "the image adds $added MB to its base; it trains, continues and saves after SIGTERM as user 10001, with a root file system that cannot be written"
