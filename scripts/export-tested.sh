#!/usr/bin/env bash
# Keeps the record of what the exporter's tests last passed with, scripts/export-tested.sha256: the exporter with its pinned
# requirements, the embedded bundles, the optimizer's graphs, and the checkpoint format, which the tests that run the
# program read and write.
#
#   scripts/export-tested.sh --write               writes the record, after all tests passed
#   scripts/export-tested.sh --write-checkpoints   writes what it says of the checkpoint format, after scripts/test-checkpoints.sh
#   scripts/export-tested.sh                       ends with 0 when the record is of these files, and names those that differ
set -euo pipefail
cd "$(dirname "$0")/.."

record=scripts/export-tested.sha256
exporter="scripts/export scripts/xtts_export ortgraphs/builtin ortgraphs/optim" checkpoints=host/train/checkpoint
now() {
	git ls-files -z --cached --others --exclude-standard -- "$@" |
		grep -zvE '(_test\.go|\.md)$|/testdata/' | LC_ALL=C sort -z | xargs -0 sha256sum
}
all() { now $checkpoints; now $exporter; }

case "${1-}" in
--write) all >"$record" ;;
--write-checkpoints)
	former=$(grep -v "  $checkpoints/" "$record")
	{ now $checkpoints; echo "$former"; } >"$record"
	;;
"")
	[ -e "$record" ] || { echo "export-tested: there is no $record"; exit 1; }
	changed=$({ diff "$record" <(all) || true; } | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u)
	[ -z "$changed" ] || { echo "export-tested: changed since the exporter's tests passed:"; sed 's/^/  /' <<<"$changed"; exit 1; }
	echo "export-tested: nothing changed since the exporter's tests passed"
	;;
*)
	echo "usage: export-tested.sh [--write|--write-checkpoints]" >&2
	exit 2
	;;
esac
