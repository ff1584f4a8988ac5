"""A plugin for xtts-host: one augmentation, soft clipping. docs/plugins.md of xtts-host explains it."""

import numpy as np
from xtts_plugin import Stage, serve


class SoftClip(Stage):
    """Distorts each clip like an overdriven microphone. The drive of a clip is uniform in [0, max_drive)."""

    def configure(self, config):
        self.max_drive = config["max_drive"]

    def process(self, batch):
        for row in batch.rows():  # those that are not empty
            # Each row has its own draws: a clip gets the same drive in any batch, process or restarted run.
            drive = row.draws.uniform(0, self.max_drive)
            row.report(drive=drive)  # if the host asks for it
            row["waveform"] = overdrive(row["waveform"], drive)


def overdrive(clip, drive):
    """tanh(drive * x) / tanh(drive) of each sample x, so samples of ±1 keep their value. A drive of 0 changes nothing."""
    return np.tanh(drive * clip) / np.tanh(drive) if drive else clip


if __name__ == "__main__":
    serve({"my-plugin": SoftClip})
