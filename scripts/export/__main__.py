"""python -m export [bundles] [optimizer] [parity] [learn]: writes the repository's own graphs; without a name, all but learn.

python -m export to-torch | from-torch: a run's weights to PyTorch and back (docs/weights.md).
"""

import sys

import torch

from . import builtin, optimizer, wayback
from .baseline import learn, parity


def bundles() -> None:
    for folder, bundle in builtin.FOLDERS.items():
        bundle.write(folder)
        print(f"wrote {bundle.name} to {folder}")


def goldens() -> None:
    folder = builtin.REPOSITORY / "ortgraphs/testdata/parity"
    # More threads would split sums in other places.
    torch.set_num_threads(1)
    parity.write(builtin.MYXTTS_NANO, folder, "nano")
    for bundle, name in ((builtin.MYXTTS_PICO, "pico"), (builtin.MYXTTS_MULTISPEAKER, "multispeaker")):
        parity.write(bundle, folder, name)
        parity.write_accumulation(bundle, folder, name)
    print(f"wrote golden numbers to {folder}")


def learns() -> None:
    for bundle in (builtin.MYXTTS_NANO, builtin.MYXTTS_MULTISPEAKER):
        learn.run(bundle)


COMMANDS = {
    "bundles": bundles,
    "optimizer": lambda: optimizer.write(builtin.REPOSITORY / "ortgraphs/optim"),
    "parity": goldens,
    "learn": learns,
}

# These take arguments of their own.
ARGUED = ("to-torch", "from-torch")

if sys.argv[1:2] and sys.argv[1] in ARGUED:
    wayback.main(sys.argv[1:])
    sys.exit()

for command in sys.argv[1:] or ("bundles", "optimizer", "parity"):
    if command not in COMMANDS:
        sys.exit(f"error: unknown command {command!r}\nhint: one of {', '.join((*COMMANDS, *ARGUED))}")
    COMMANDS[command]()
