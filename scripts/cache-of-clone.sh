#!/usr/bin/env bash
# Gives a clone for a test the cache of this checkout, by links, but a copy of CUDA's header in a folder of its own. So the
# flags of C code differ, and Go compiles again what depends on them: programs that are the same then do not owe it to the
# build cache.
#   scripts/cache-of-clone.sh CLONE
set -euo pipefail
cache=$(readlink -f "$(dirname "$0")/../.cache")
mkdir "$1/.cache"
ln -s "$cache"/* "$1/.cache"
rm "$1/.cache/cuda"
cp -r "$cache/cuda" "$1/.cache/cuda"
