"""The SDK for plugins of xtts-host in Python: stages that prepare or augment the batches of a training run.

    from xtts_plugin import Stage, serve

    class Gain(Stage):
        def configure(self, config):
            self.low, self.high = config["low"], config["high"]

        def process(self, batch):
            for row in batch.rows():
                row["waveform"] *= row.draws.uniform(self.low, self.high)

    if __name__ == "__main__":
        serve(gain=Gain)

Import it before libraries that print when they are imported: from then on, what is printed goes to the host's log.
"""
from . import process as _process

_process.begin()

from .batch import Batch, Row, Source  # noqa: E402  after begin, as these import NumPy
from .draws import Draws  # noqa: E402
from .errors import UserError  # noqa: E402
from .serving import serve  # noqa: E402
from .stage import Config, DataFile, DataFolder, Stage  # noqa: E402

__version__ = "0.1.0"  # pyproject.toml reads it
__all__ = ["Batch", "Config", "DataFile", "DataFolder", "Draws", "Row", "Source", "Stage", "UserError", "serve"]
