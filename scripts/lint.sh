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

# Not go tool, which has no flags for the compiler and so compiles the standard library once more, in a form that nothing else uses.
tools=$PWD/.cache/tools
go build -modfile=scripts/tools/go.mod -ldflags=-w -o "$tools/" honnef.co/go/tools/cmd/staticcheck golang.org/x/vuln/cmd/govulncheck

# Half of staticcheck's time would be the collection of garbage.
export GOGC=400 GOMEMLIMIT=3GiB
"$tools/staticcheck" $all
echo "staticcheck: no finding"

database=${GOVULNDB:-https://vuln.go.dev}
if ! python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/index/db.json", timeout=10)' "$database" 2>/dev/null; then
	echo "govulncheck: skipped: no database reachable at $database"
	exit
fi
"$tools/govulncheck" -db "$database" $all
