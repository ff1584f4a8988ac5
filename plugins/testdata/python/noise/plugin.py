"""Adds recordings of noise to waveforms: the example of docs/plugin-reference.md for data folders."""
import numpy as np
from xtts_plugin import Stage, UserError, audio, serve


class Noisy(Stage):
    def configure(self, config):
        self.recordings = []
        for file in config.data["noise"].files:
            try:
                self.recordings.append(audio.read(file.path, config.features["sample_rate"]))
            except UserError as e:
                config.log.warning("a recording is skipped: %s; hint: %s", e, e.hint)
        if not self.recordings:
            raise UserError("no recording can be read", "the log says why; put recordings into the folder")

    def process(self, batch):
        for row in batch.rows():
            recording, clip = row.draws.choice(self.recordings), row["waveform"]
            at, level = row.draws.ints(len(recording)), np.float32(row.draws.uniform(0, 0.5))
            clip += level * np.take(recording, np.arange(at, at + len(clip)), mode="wrap")


if __name__ == "__main__":
    serve(noisy=Noisy)
