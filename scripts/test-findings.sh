#!/usr/bin/env bash
# Runs the cases of scripts/findings: each repeats a problem that a first user, a plugin author or a tester once found. Prints one
# line per case: result, time, name and expectation. NAME ... runs only those cases; --list prints them and runs none.
# --tested does not run the cases' Go tests again, nor cases that another test covers. With XTTS_NIGHTLY set, cases have their full
# size. XTTS_HOST_TREE=DIR runs the program of another checkout, which must be built.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
cases=$here/scripts/findings

# A case is a function below a comment `# name: what is expected`, in any file of the folder.
list() { grep -hE '^# [a-z0-9-]+: ' "$cases"/*.sh | sed 's/^# //'; }

if [ "${1:-}" = --list ]; then list; exit; fi
export TESTED=
if [ "${1:-}" = --tested ]; then TESTED=yes; shift; fi
export TREE=${XTTS_HOST_TREE:-$here} CASES=$cases
unset XTTS_HOST_TREE # the program refuses a variable of its name that is no flag
[ -x "$TREE/bin/xtts-host" ] || { echo "error: $TREE/bin/xtts-host is missing; build it by: make build" >&2; exit 1; }

env=$("$here/scripts/cgo-env.sh")
eval "$env"
work=$(mktemp -d)
export TESTS=$work/tests # programs of Go tests
mkdir "$TESTS"
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
failed=0 ran=0
while IFS= read -r line; do
  name=${line%%:*}
  if (($#)); then case " $* " in *" $name "*) ;; *) continue ;; esac; fi
  ran=$((ran + 1)) start=$SECONDS status=0
  mkdir "$work/$name"
  (cd "$work/$name" && exec bash -euo pipefail "$cases/lib/case.bash" "$name") >"$work/$name.log" 2>&1 || status=$?
  printf '%-4s %3d s  %s\n' "$([ $status = 0 ] && echo ok || echo FAIL)" $((SECONDS - start)) "$line"
  if [ $status != 0 ]; then failed=$((failed + 1)); tail -n 15 "$work/$name.log" | sed 's/^/            /'; fi
  chmod -R u+w "$work/$name"; rm -rf "${work:?}/$name"
done < <(list)
echo "$ran cases, $failed failed"
[ $failed = 0 ] && [ $ran -gt 0 ]
