"""The plugin of main.go on the Python SDK: one pass over the batch."""
from xtts_plugin import Stage, serve


class Pass(Stage):
    def process(self, batch):
        x = batch["x"]
        x *= 1.0001


serve({"pass": Pass})
