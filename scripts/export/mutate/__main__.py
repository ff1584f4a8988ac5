"""Exports changed models: `python -m export.mutate [COUNT] [SEED]`."""

import sys

from . import run

count, seed = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 300), (2, 0)))
print(run(seed, count))
