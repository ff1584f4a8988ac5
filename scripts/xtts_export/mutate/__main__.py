"""Exports changed models: `python -m xtts_export.mutate [COUNT] [SEED]`. Exit status 1 says that some end was neither a bundle nor a refusal."""

import sys

from . import run

count, seed = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 300), (2, 0)))
ends = run(seed, count)
print(dict(ends))
sys.exit(bool(ends.keys() - {"exported", "refused"}))
