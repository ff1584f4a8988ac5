# Runs one case in its own empty folder: bash case.bash NAME. The functions below are for the cases; a case fails where one of
# its commands does.

PATH=$TREE/bin:$PATH
export PATH XDG_CACHE_HOME=$TREE/.cache

# clips FOLDER N SECONDS [RATE]: a data set of N clips of tones, metadata.csv in the LJSpeech form.
clips() { python3 "$CASES/lib/clips.py" "$@"; }

# train ARGS: the embedded model with the first-party plugins, 4 rows a batch, not evaluated.
train() { xtts-host --plugins "$TREE/plugins" --batch-size 4 --eval-every 0 "$@"; }

# refused STATUS COMMAND...: the command must end with that status; its output is in ./output.
refused() {
  local want=$1 got=0
  shift
  "$@" >output 2>&1 || got=$?
  [ $got = "$want" ] || { cat output; echo "exit status $got, expected $want"; return 1; }
}

# says TEXT [FILE], silent TEXT [FILE]: the output (or the file) has the text, has it not.
says() { grep -qF -- "$1" "${2:-output}" || { cat "${2:-output}"; echo "expected: $1"; return 1; }; }
silent() { ! grep -F -- "$1" "${2:-output}" || { echo "not expected: $1"; return 1; }; }

# line PATTERN [FILE]: a whole line of the output (or the file) matches.
line() { grep -qx -- "$1" "${2:-output}" || { cat "${2:-output}"; echo "expected a line: $1"; return 1; }; }

# wrapped LINE...: the folder ./plugins with the plugin features, whose program is a shell script of these lines, run in this folder;
# $program is the real program.
wrapped() {
  mkdir -p plugins/features
  cp "$TREE/plugins/features/plugin.json" plugins/features
  { echo '#!/bin/sh'; printf 'cd "%s"\nprogram="%s"\n' "$PWD" "$TREE/plugins/features/features_linux_amd64"; printf '%s\n' "$@"; } >plugins/features/features_linux_amd64
  chmod +x plugins/features/features_linux_amd64
}

# gotest PACKAGE REGEXP: the Go tests of that name, at least one of them. The tests of a package are built once for all cases. With
# TESTED they have run already, and must only be there.
gotest() {
  if [ -n "${TESTED:-}" ]; then
    local names=${2%%/*}
    [ "$names" != . ] || names=Test
    grep -qE "^func (${names//\$/\\(})" "$TREE/$1"/*_test.go || { echo "no test $2 in $1"; return 1; }
    return
  fi
  local test=$TESTS/${1//\//_}.test
  # By its path: shared is a module of its own.
  [ -x "$test" ] || (cd "$TREE" && go test -c -vet=off -ldflags=-w -o "$test" "${1/#./github.com/xtts-host/xtts-host}")
  (cd "$TREE/$1" && "$test" -test.timeout=10m -test.v -test.run "$2") | tee gotest
  grep -q '^=== RUN' gotest || { echo "no test $2 in $1"; return 1; }
}

for file in "$CASES"/*.sh; do . "$file"; done
"$1"
