#!/usr/bin/env bash
# Keeps the record of what the exporter's tests last passed with, scripts/export-tested.sha256: the exporter with its pinned
# requirements, the embedded bundles, the optimizer's graphs, and the checkpoint format that the tests read.
#
#   scripts/export-tested.sh --write    writes the record, after the tests passed
#   scripts/export-tested.sh            ends with 0 when the record is of these files, and names those that differ
set -euo pipefail
cd "$(dirname "$0")/.."

record=scripts/export-tested.sha256
now() {
	git ls-files -z --cached --others --exclude-standard -- scripts/export scripts/xtts_export ortgraphs/builtin ortgraphs/optim host/train/checkpoint |
		grep -zvE '(_test\.go|\.md)$|/testdata/' | LC_ALL=C sort -z | xargs -0 sha256sum
}

case "${1-}" in
--write) now >"$record" ;;
"")
	[ -e "$record" ] || { echo "export-tested: there is no $record"; exit 1; }
	changed=$({ diff "$record" <(now) || true; } | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u)
	[ -z "$changed" ] || { echo "export-tested: changed since the exporter's tests passed:"; sed 's/^/  /' <<<"$changed"; exit 1; }
	echo "export-tested: nothing changed since the exporter's tests passed"
	;;
*)
	echo "usage: export-tested.sh [--write]" >&2
	exit 2
	;;
esac
