"""Refusals whose hints no module of the suite follows. The list becomes shorter only."""

UNTRIED = {
    # Of a graph that is wrong: no module is known.
    "ONNX Runtime cannot load the graph: {}",
    "in a batch of {}, {} of the graph {}",
    "the graph cannot be written: {}",
    "the graph does not run: {}",
    "tracing failed: {}",
    "{} of the eval graph differs from PyTorch's by {}",
    "{} of the graph differs from PyTorch's by {}",
    # Of players and of precisions: the suite's modules have one player, in f32.
    "no matrix product is in the module, so nothing would be bf16",
    "two players return the metric {}",
    "{} {} belongs to no player",
    # Of the command line, which no module writes: test_usage.py.
    "{} is no option of {}",
}
