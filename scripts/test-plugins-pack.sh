#!/usr/bin/env bash
# Follows docs/plugins-share.md word for word, as an author and a user would: in an empty home, and in a folder with spaces and
# umlauts. From nothing to stages in Go and in Python that are packed, signed, installed elsewhere, verified, trained with and
# removed. Then it changes an installed file, and expects that this is found. Python packages come from the network.
# GOFLAGS, GOPATH, GOCACHE and GOPROXY are those of the caller; everything else happens in a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD

fail() { echo "error: $1" >&2; [ $# -lt 2 ] || echo "hint: $2" >&2; exit 1; }

[ -x bin/xtts-host ] || fail "$checkout/bin/xtts-host is missing" "make build"
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
home="$top/Müllers Haus" work="$top/Müllers Haus/meine Stücke"
mkdir -p "$work"
cd "$work"
GOPATH=$(go env GOPATH) GOCACHE=$(go env GOCACHE)
export GOPATH GOCACHE GOWORK=off HOME=$home XTTS_HOST_DEVICE=cpu PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
unset "${!XDG_@}"
export PATH=$checkout/bin:$PATH

page=$checkout/docs/plugins-share.md
blocks=$(awk '/^```sh$/ {on=1; next} /^```$/ {on=0} on' "$page")
[ -n "$blocks" ] || fail "$page has no sh block"
bash -euo pipefail -c "set -x; $blocks" </dev/null >"$top/log" 2>&1 || { cat "$top/log" >&2; fail "$page does not work as written"; }

# What the page says has happened.
for stage in room-echo py-clip; do
	grep -q "\"$stage\"" run/report.json || fail "the run did not use $stage"
	[ "$(grep -c "^$stage RW" "$home/.config/xtts-host/plugin-keys")" = 1 ] || fail "the key of $stage is not known"
done
grep -q 'room-echo .*; unchanged, signed by RW' "$top/log" || fail "plugins list does not show the signer"
tar tzf room-echo-0.1.0.tar.gz | grep -q '^plugin/room-echo_linux_arm64$' || fail "the archive lacks a platform"
cp room-echo-0.1.0.tar.gz first.tar.gz
xtts-host plugins pack mine/room-echo >"$top/packed"
cmp first.tar.gz room-echo-0.1.0.tar.gz || fail "the same files make other bytes"

# A key with a password, which is asked for on a terminal.
if command -v script >/dev/null; then
	printf 'word\nword\n' | script -qec "xtts-host plugins key locked.key" /dev/null >"$top/key"
	printf 'wrong\n' | script -qec "xtts-host plugins pack mine/room-echo --sign locked.key" /dev/null >"$top/key" && fail "a wrong password signs"
	printf 'word\n' | script -qec "xtts-host plugins pack mine/room-echo --sign locked.key" /dev/null >"$top/key"
	grep -qF "$(sed -n 2p locked.key.pub)" room-echo-0.1.0.tar.gz.minisig || fail "the signature does not name its key"
fi

# refused STATUS TEXT ARGUMENT...: a command ends with a status and an error that has the text.
refused() {
	local status=0 want=$1 text=$2
	shift 2
	xtts-host "$@" >"$top/out" 2>&1 </dev/null || status=$?
	[ "$status" = "$want" ] && grep -qF -- "$text" "$top/out" && grep -q '^ *hint: ' "$top/out" ||
		{ cat "$top/out" >&2; fail "xtts-host $*: status $status, and $want with '$text' is expected"; }
}
train=(--plugins theirs --augment py-clip --require-signatures --batch-size 8 --max-steps 1 --run-dir other)
xtts-host plugins verify --plugins theirs --require-signatures >"$top/out" # features is beside the program
echo '# changed' >>theirs/py-clip/plugin.py
refused 4 'plugin py-clip has changed since it was installed: plugin.py has changed' plugins verify --plugins theirs
refused 2 'theirs/py-clip is modified' "${train[@]}" # plugin.sum finds it first
(cd theirs/py-clip && find Makefile plugin.json plugin.py requirements.txt requirements.lock run sdk -type f ! -path '*/__pycache__/*' -print0 |
	LC_ALL=C sort -z | xargs -0 sha256sum >plugin.sum)
refused 2 'plugin py-clip has changed since it was installed: plugin.py has changed, plugin.sum has changed' "${train[@]}"
refused 2 'was not installed from an archive' plugins install py-clip-0.1.0.tar.gz --plugins mine --replace --yes

echo "docs/plugins-share.md: all $(wc -l <<<"$blocks") lines of its commands work, and what was changed since is refused"
