#!/usr/bin/env bash
# Runs staticcheck and govulncheck on the repository, in the versions of scripts/tools/go.mod.
#
# govulncheck needs a database: GOVULNDB=file:///FOLDER names a copy, the default is vuln.go.dev. If neither is reachable it is
# skipped, and the last line reports that.
set -euo pipefail
cd "$(dirname "$0")/.."
env=$(scripts/cgo-env.sh)
eval "$env"

# shared is a module of its own.
all="./... github.com/xtts-host/xtts-host/shared/..."

tool() { go tool -modfile=scripts/tools/go.mod "$@"; }

tool staticcheck $all
(cd plugins/template && GOWORK=off go tool -modfile=../../scripts/tools/go.mod staticcheck ./...)
echo "staticcheck: no finding"

database=${GOVULNDB:-https://vuln.go.dev}
if ! python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/index/db.json", timeout=10)' "$database" 2>/dev/null; then
	echo "govulncheck: skipped: no database reachable at $database"
	exit
fi
tool govulncheck -db "$database" $all
