#!/usr/bin/env bash
# Checks that this machine and the folder of the checkout meet the requirements for building and testing. One line per problem.
set -u
rc=0
need() { command -v "$1" >/dev/null || { echo "error: $1 is missing: install $2" >&2; rc=1; }; }
need go "Go 1.26 or later"
need cc "a C compiler (gcc)"
need python3 "Python 3.11 or later"
python3 -m pip --version >/dev/null 2>&1 || { echo "error: pip is missing: install Python's pip (python3-pip)" >&2; rc=1; }
case $PWD in
*[\"\'\\:]*) echo "error: Go cannot build in $PWD: move the checkout to a folder without quotes, backslashes and colons in its path" >&2; rc=1 ;;
esac
exit $rc
