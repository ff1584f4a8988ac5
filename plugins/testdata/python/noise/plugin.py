"""Adds recordings of noise to waveforms: the example of docs/plugins.md for data folders."""
import numpy as np
from xtts_plugin import Stage, audio, serve


class Noisy(Stage):
    def configure(self, config):
        rate = config.features["sample_rate"]
        self.recordings = [audio.read(file.path, rate) for file in config.data["noise"].files]

    def process(self, batch):
        for row in batch.rows():
            recording, clip = row.draws.choice(self.recordings), row["waveform"]
            at, level = row.draws.ints(len(recording)), np.float32(row.draws.uniform(0, 0.5))
            clip += level * np.take(recording, np.arange(at, at + len(clip)), mode="wrap")


if __name__ == "__main__":
    serve(noisy=Noisy)
