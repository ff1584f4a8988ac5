"""A plugin for xtts-host in Python: the stage `gain` multiplies a row of the waveform by a gain, with a probability.

The first python3 in the host's PATH runs it. It needs the SDK in shared/python.
"""
from xtts_plugin import Stage, serve


class Gain(Stage):
    def configure(self, config):
        self.probability, self.factor = config["probability"], 10 ** (config["db"] / 20)

    def process(self, batch):
        for row in batch.rows():
            louder = row.draws.chance(self.probability)
            row.report(louder=louder)
            if louder:
                row["waveform"] *= self.factor


if __name__ == "__main__":
    serve(gain=Gain)
