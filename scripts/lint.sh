#!/usr/bin/env bash
# Runs codespell on the repository's texts, and staticcheck and govulncheck on its code, in the versions of scripts/tools/go.mod.
#
# govulncheck needs a database: GOVULNDB=file:///FOLDER names a copy, the default is vuln.go.dev. If neither is reachable it is
# skipped, and the last line reports that.
set -euo pipefail
cd "$(dirname "$0")/.."

# Pages, comments, messages and help. Tests misspell on purpose. A word that is right is added to scripts/spelling.txt.
version=2.4.3
spelling=$PWD/.cache/codespell-$version
if ! [ -x "$spelling/bin/codespell" ]; then
	python3 -m venv --clear "$spelling"
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 "$spelling/bin/python" -m pip install --quiet --only-binary=:all: "codespell==$version"
fi
git ls-files -z -- '*.md' '*.go' '*.py' '*.sh' '*.cu' '*.html' '*.css' '*.txt' '*.yaml' '*.yml' Makefile \
	':!THIRD_PARTY_NOTICES.md' ':!*.pb.go' ':!*_test.go' ':!*/test_*.py' ':!*/testdata/*' ':!scripts/findings/*' |
	xargs -0 "$spelling/bin/codespell" --ignore-words scripts/spelling.txt --ignore-regex '\w*[a-z][A-Z]\w*|%\w+' ||
	{ echo "lint: correct these words, or add them to scripts/spelling.txt" >&2; exit 1; }
echo "codespell: no finding"

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
