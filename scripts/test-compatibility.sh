#!/usr/bin/env bash
# Trains with plugins of this checkout under a host that has only protocol 1, and with plugins of that host under this one: the
# losses of a plugin are the same under both, to the bit. The older host is built from a commit of this repository.
#
#   scripts/test-compatibility.sh [COMMIT]
#
# GOFLAGS, GOPATH, GOCACHE and GOPROXY are those of the caller. Nothing is written outside of .cache and a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD cache=$(readlink -f .cache)
commit=${1:-fb74322ab5315473c47969bba6d135d34f24dca7} # the last with a host of protocol 1

fail() { echo "error: $1" >&2; [ $# -lt 2 ] || echo "hint: $2" >&2; exit 1; }

[ -x bin/xtts-host ] || fail "$checkout/bin/xtts-host is missing" "make build"
git cat-file -e "$commit^{commit}" 2>/dev/null || git fetch --quiet --depth 1 origin "$commit" 2>/dev/null ||
	fail "this clone has no commit $commit, which the older host is built from" "git fetch --unshallow, or clone with the whole history"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/old"
git archive "$commit" | tar -x -C "$work/old"
ln -s "$cache" "$work/old/.cache"
(cd "$work/old" && scripts/build.sh >"$work/built") || { cat "$work/built" >&2; fail "the host of $commit cannot be built"; }
scripts/venv-plugin.sh
host() { case $1 in new) echo "$checkout" ;; old) echo "$work/old" ;; esac; }
on() { "$(host "$1")/bin/xtts-host" "${@:2}"; } # HOST ARGUMENT...

# Plugins as their authors make them, with the SDK and the templates of each host. The names are the same, and so are the draws.
for from in old new; do
	made=$work/plugins-$from
	on "$from" plugins new "$made/go-clip" >>"$work/made"
	on "$from" plugins new "$made/py-clip" --lang python >>"$work/made"
	GOWORK=off CGO_ENABLED=0 make --silent -C "$made/go-clip"
	ln -s "$cache/venv-plugin" "$made/py-clip/.venv"
done

# train HOST FROM: trains with the plugins that FROM made, and writes the losses.
train() {
	local folder=$work/$1-$2 status=0
	cp -r "$work/plugins-$2" "$folder"
	ln -s "$(host "$1")/plugins/features" "$folder/features"
	on "$1" --plugins "$folder" --augment go-clip,py-clip --batch-size 4 --max-steps 4 --seed 3 \
		--cache-dir "$work/cache-$1" --run-dir "$folder-run" >"$folder.log" 2>&1 || status=$?
	[ "$status" = 0 ] || { cat "$folder.log" >&2; fail "plugins of the $2 host under the $1 one: exit status $status"; }
	! grep -i 'warning: plugin' "$folder.log" || fail "plugins of the $2 host under the $1 one: a warning, see above"
	python3 - "$folder-run/metrics.jsonl" >"$work/$1-$2.losses" <<-'EOF'
	import json, sys
	for line in open(sys.argv[1]):
	    entry = json.loads(line)
	    if "loss" in entry:
	        print(entry.get("step"), repr(entry["loss"]))
	EOF
	[ -s "$work/$1-$2.losses" ] || fail "the run of the $1 host has no losses"
}
for from in old new; do
	for under in old new; do
		train "$under" "$from"
	done
	cmp "$work/old-$from.losses" "$work/new-$from.losses" || {
		diff "$work/old-$from.losses" "$work/new-$from.losses" >&2 || true
		fail "plugins of the $from host have other losses under the new host than under the old one"
	}
done

# The rules of the protocol hold for older plugins, too.
on new plugins test --cache-dir "$work/cache-new" "$work/plugins-old/go-clip" "$work/plugins-old/py-clip" >"$work/rules" ||
	{ cat "$work/rules" >&2; fail "plugins of the old host break rules of this one"; }

# An older host refuses a plugin that needs protocol 2 before it starts it.
cp -r "$work/plugins-new" "$work/needs-2"
rm "$work/needs-2/go-clip/plugin.sum"
sed -i 's/"protocol": 1/"protocol": 2/' "$work/needs-2/go-clip/plugin.json"
on old plugins list "$work/needs-2" >"$work/listed" 2>&1 || true
grep -q 'it uses protocol 2, but this host uses 1' "$work/listed" ||
	{ cat "$work/listed" >&2; fail "the old host does not refuse a plugin that needs protocol 2"; }
on new plugins test --cache-dir "$work/cache-new" "$work/needs-2/go-clip" >"$work/rules" ||
	{ cat "$work/rules" >&2; fail "a plugin that needs protocol 2 breaks rules under this host"; }

echo "compatibility: plugins of both hosts, in both languages, have the same losses under both ($(tail -1 "$work/new-new.losses"))"
