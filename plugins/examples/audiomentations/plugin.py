"""Transforms of audiomentations on each clip: {"transforms": [{"transform": "PitchShift", "args": {"p": 1}}, ...]}."""
import random

import audiomentations
import numpy as np
from xtts_plugin import Stage, UserError, serve


def build(spec):  # OneOf, SomeOf and Compose have a list of others in their args
    args = {k: [build(t) for t in v] if k == "transforms" else v for k, v in spec.get("args", {}).items()}
    try:
        return getattr(audiomentations, spec["transform"])(**args)
    except (AssertionError, AttributeError, ImportError, TypeError, ValueError) as e:
        raise UserError(f"{spec['transform']}: {e!r}", "audiomentations documents its transforms and their args") from e


class Audiomentations(Stage):
    def configure(self, config):
        self.rate, self.transform = config.features["sample_rate"], build({"transform": "Compose", "args": config})

    def process(self, batch):
        for row in batch.rows():  # what a transform draws comes from these two generators
            random.seed(row.draws.bits64()), np.random.seed(row.draws.ints(2**32))
            n = len(row["waveform"])  # the clip keeps it; some transforms need a tenth of a second
            out = self.transform(np.pad(row["waveform"], (0, max(0, self.rate // 8 - n)), "wrap"), self.rate)[:n]
            row["waveform"] = np.pad(out, (0, n - len(out)))


if __name__ == "__main__":
    serve(audiomentations=Audiomentations)
