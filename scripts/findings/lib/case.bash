# Runs one case in its own empty folder: bash case.bash NAME. The functions below are for the cases; a case fails where one of
# its commands does.

PATH=$TREE/bin:$PATH
export PATH XDG_CACHE_HOME=$TREE/.cache

# clips FOLDER N SECONDS [RATE]: a data set of N clips of tones, metadata.csv in the LJSpeech form.
clips() { python3 "$CASES/lib/clips.py" "$@"; }

# train ARGS: the smallest model with the first-party plugins, 4 rows a batch, not evaluated. A case for the embedded model sets
# model=nano: its starts take twice as long.
train() {
  local graph=()
  [ "${model:-pico}" = nano ] || [[ " $*" = *" --"@(graph|resume|resume-or-start|config)[\ =]* ]] || graph=(--graph "$TREE/ortgraphs/testdata/pico")
  xtts-host --plugins "$TREE/plugins" --batch-size 4 --eval-every 0 "${graph[@]}" "$@"
}

# full USUAL ALL: the second with XTTS_NIGHTLY, otherwise the first: what only repeats a check in another place, for make nightly.
full() { if [ -n "${XTTS_NIGHTLY:-}" ]; then echo "$2"; else echo "$1"; fi; }

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
# $program is the real program. The sandbox lets it write to this folder, and execute that program, because variables name them.
wrapped() {
  export XTTS_PLUGIN_CASE=$PWD XTTS_PLUGIN_PROGRAM=$TREE/plugins/features/features_linux_amd64
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

# covered WHERE TEST || return 0: make nightly alone goes on with the case, since another test has shown the same: the Go test TEST of a
# package, or the script TEST of cmd/xtts-host. With TESTED it has run already, and must only be there.
covered() {
  [ -n "${TESTED:-}" ] || return 0
  case $2 in
  *.txtar) [ -f "$TREE/$1/testdata/script/$2" ] || { echo "no script $2"; exit 1; } ;;
  *) gotest "$1" "$2" || exit 1 ;;
  esac
  return 1
}

for file in "$CASES"/*.sh; do . "$file"; done
"$1"
