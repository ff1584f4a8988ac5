#!/usr/bin/env bash
# Builds bin/xtts-host and the first-party plugins. They compute on the CPU or on a GPU, and start without a driver.
#
#   scripts/build.sh           all
#   scripts/build.sh plugins   the plugins
#   scripts/build.sh release FOLDER VERSION   all, below FOLDER; the program is named VERSION in place of the commit
set -euo pipefail
cd "$(dirname "$0")/.."

env=$(scripts/cgo-env.sh)
eval "$env"
out=. gcflags=-gcflags=all=-dwarf=false ldflags='-s -w -buildid=' vcs=auto name=
if [ "${1:-}" = release ]; then
	out=$2 vcs=false name=" -X github.com/xtts-host/xtts-host/host/base/release.name=$3"
fi
if [ "${1:-}" != plugins ]; then
	[ -e "$out/bin/xtts-host" ] || echo "bin/xtts-host: compiling; the first time also the modules that it uses, which takes minutes"
	go build -trimpath "$gcflags" -buildvcs=$vcs -ldflags "$ldflags$name" -o "$out/bin/xtts-host" ./cmd/xtts-host
	echo "bin/xtts-host: built"
fi

# A plugin contains no paths (-trimpath), no commit (-buildvcs=false) and no hash of the flags (-buildid=): one
# compiler makes the same bytes in any folder and at any commit. The host contains the commit, as its version. What a
# run's identity has of a plugin is plugin.sources, which does not depend on the compiler: a run can only be resumed
# with the plugins that it began with.
platform=$(go env GOOS)_$(go env GOARCH)
for p in features augment inference; do
	program=${p}_$platform folder=$out/plugins/$p
	go build -trimpath "$gcflags" -buildvcs=false -ldflags "$ldflags" -o "$folder/$program" "./plugins/$p"
	[ "$out" = . ] || cp "plugins/$p/plugin.json" "$folder"
	python3 scripts/plugin_sources.py "./plugins/$p" >"$folder/plugin.sources"
	(cd "$folder" && sha256sum plugin.json plugin.sources "$program" >plugin.sum)
	echo "plugins/$p: built"
done
