"""Graphs of a bundle that no training step runs: frozen parts of a model, and the model as it speaks (docs/bundle.md, inference graphs)."""

from dataclasses import dataclass, field

from torch import nn

from .inputs import Input


@dataclass(frozen=True)
class Inference:
    """One graph. name, kind, sample_rate and feeds (inputs by the outputs that they take in the next run) are as in bundle.json.

    module's forward takes the inputs in order, and returns the outputs in order, in evaluation mode. Its parameters and buffers become the graph's
    weights. Those that are parameters of the exported module, the same tensors, are taken from there.

    sizes give every symbol of the inputs a value above 1, to trace with and to compare with PyTorch; so do sizes of twice as many, less one.
    """

    name: str
    kind: str
    module: nn.Module
    inputs: list[Input]
    outputs: list[Input]
    sizes: dict[str, int]
    sample_rate: int | None = None
    feeds: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        return f"{self.name}.onnx"

    @property
    def weights_file(self) -> str:
        return f"{self.name}.safetensors"

    def entry(self, own: bool) -> dict:
        """That of bundle.json; own says whether there are weights."""
        tensor = lambda i: {"name": i.name, "dtype": i.dtype, "shape": list(i.shape), **({"pad": i.pad, "lengths": i.lengths} if i.lengths else {})}
        return {
            "name": self.name, "kind": self.kind, "file": self.file, **({"weights": self.weights_file} if own else {}),
            **({"sample_rate": self.sample_rate} if self.sample_rate else {}), "inputs": [tensor(i) for i in self.inputs],
            "outputs": [tensor(o) | ({"feeds": self.feeds[o.name]} if o.name in self.feeds else {}) for o in self.outputs]}
