"""What cleaning saves on the preset `tiny`: `python -m xtts_export.bench_clean` traces it (minutes) and runs both graphs in turn on one core.

Printed are the numbers of nodes, and the ratio of the steps' CPU times with its 95 % confidence interval. CPU time, and pairs of which
now the one, now the other comes first: other work on the machine hits both alike. Exit status 1 is a promise that is broken: at most
MOST of the nodes, and no slower.
"""

import math
import resource
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch

from . import capture, joint, presets, session, writer
from .clean import clean
from .inputs import SEED, batch, zeros
from .module import Export, Step
from .progress import phase

PRESET = "tiny"
SIZES = {"B": 2, "T_text": 16, "T_mel": 32}
PAIRS = 150
MOST = 0.85
# With room for what other work on the machine adds to the interval's end.
NOT_SLOWER = 1.02
# Of Student's distribution with PAIRS - 1 degrees of freedom, two-sided 95 %.
QUANTILE = 1.976


def main() -> None:
    export = presets.build(PRESET)
    step = Step(export)
    with phase("trace"):
        naive = trace(export, step)
    cleaned = onnx.ModelProto()
    cleaned.CopyFrom(naive)
    capture.rewrite(cleaned)
    print(f"{PRESET}: {clean(cleaned)}")
    share = len(cleaned.graph.node) / len(naive.graph.node)
    print(f"{len(cleaned.graph.node)} nodes are {share:.1%} of the {len(naive.graph.node)} of torch.onnx")
    rows = batch(export.inputs, SIZES, np.random.default_rng(0))
    feed = {name: p.detach().numpy() for name, p in step.named_parameters()} | {name: x.numpy() for name, x in rows.items()}
    feed["seed"] = np.array(-1, np.int64)
    ratio, low, high, seconds = compare(naive, cleaned, feed)
    sizes = ", ".join(f"{name} {n}" for name, n in SIZES.items())
    print(f"CPU time of a step ({sizes}), cleaned over naive: {ratio:.3f} ({low:.3f} to {high:.3f}), median {seconds * 1e3:.0f} ms, {PAIRS} pairs")
    if share > MOST or high > NOT_SLOWER:
        sys.exit(f"more than {MOST:.0%} of the nodes, or slower than {NOT_SLOWER}")


def trace(export: Export, step: Step) -> onnx.ModelProto:
    """The naive training graph, ready to run."""
    dry, inputs = writer.dry_run(export, step), [*export.inputs, SEED]
    model = joint.trace(step, inputs, zeros(inputs, dry.sizes), step.outputs, dry=dry)
    model.ir_version = joint.IR_VERSION
    return model


def compare(naive: onnx.ModelProto, cleaned: onnx.ModelProto, feed: dict[str, np.ndarray]) -> tuple[float, float, float, float]:
    """Ratio of the CPU times of cleaned and naive, the ends of its confidence interval, and the median seconds of cleaned."""
    with tempfile.TemporaryDirectory() as folder:
        sessions = []
        for name, model in (("naive", naive), ("cleaned", cleaned)):
            onnx.save(model, Path(folder) / f"{name}.onnx")
            sessions.append(session.load(Path(folder) / f"{name}.onnx"))
    times = [[], []]
    for pair in range(-2, PAIRS):
        for which in ((0, 1), (1, 0))[pair % 2]:
            start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            session.run(sessions[which], feed)
            if pair >= 0:
                times[which].append(resource.getrusage(resource.RUSAGE_SELF).ru_utime - start)
    logs = [math.log(b / a) for a, b in zip(*times, strict=True)]
    middle, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    return *(math.exp(middle + k * QUANTILE * error) for k in (0, -1, 1)), statistics.median(times[1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
