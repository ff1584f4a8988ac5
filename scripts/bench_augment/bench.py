"""Compares the stages of plugins/augment with audiomentations, librosa and torchaudio, on one core.

    python3 -m venv venv && venv/bin/pip install -r scripts/bench_augment/requirements.txt
    venv/bin/python scripts/bench_augment/bench.py [--rounds 7] [--only NAME,...] [--json FILE]

Each gets a clip of 5 s at 22,050 Hz in float32. A library that is not installed, or lacks the effect, has no column. In
each round, every effect is measured once in each program, one right after the other, the first of them another one in
each round. The time is that of the processor, in ms for a clip: the median of the rounds, with the least and the
greatest. Before it, each program has computed the effect.

The table has a line for each effect, and "of" the median of a library's time divided by that of the stage in the same
round.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"]:
    os.environ[variable] = "1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import scipy.io.wavfile  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from effects import effects_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATE, SECONDS = 22050, 5
LEAST = 0.25  # seconds of the processor that a measurement takes


def speech(n):
    """The clip of the benchmark in Go (effecttest.Speech)."""
    t = np.arange(n) / RATE
    phase = np.cumsum(2 * np.pi * (120 + 30 * np.sin(2 * np.pi * 0.7 * t)) / RATE)
    envelope = np.maximum(0, np.sin(2 * np.pi * 2.5 * t))
    return sum(0.2 * envelope * np.sin(h * phase) / h for h in range(1, 13)).astype(np.float32)


def recordings(folder):
    """Noise of 20 s and a response of 1 s, as in the benchmark in Go, each in a folder."""
    noise = np.random.default_rng(1).uniform(-1, 1, 20 * RATE)
    response = 0.5 * noise[:RATE] * np.exp(-6.9 * np.arange(RATE) / RATE)
    response[100] = 0.99
    for name, samples in {"noise": noise, "response": response}.items():
        os.mkdir(f"{folder}/{name}")
        scipy.io.wavfile.write(f"{folder}/{name}/0.wav", RATE, np.round(32767 * samples).astype(np.int16))


class Go:
    """The benchmarks of plugins/augment, compiled."""

    def __init__(self, folder):
        self.program = f"{folder}/augment.test"
        subprocess.run(["go", "test", "-c", "-vet=off", "-o", self.program, "./plugins/augment"], cwd=ROOT, check=True)

    def measure(self, name):
        command = [self.program, "-test.run", "^$", "-test.bench", f"^BenchmarkStages$/^{name}$", "-test.benchtime",
                   f"{LEAST}s", "-test.cpu", "1"]
        out = subprocess.run(command, cwd=ROOT / "plugins/augment", check=True, capture_output=True, text=True).stdout
        return float(re.search(r"([\d.]+) cpu-ns/op", out)[1]) / 1e6


def measure(function, clip):
    """Milliseconds of a call, after one that is not measured."""
    function(clip)
    began, count = time.process_time(), 0
    while (spent := time.process_time() - began) < LEAST or count < 3:
        function(clip)
        count += 1
    return 1000 * spent / count


def versions():
    out = {"machine": processor(), "Python": platform.python_version()}
    out["Go"] = subprocess.run(["go", "env", "GOVERSION"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    for name in ["numpy", "scipy", "audiomentations", "python_stretch", "librosa", "soxr", "torch", "torchaudio", "pyloudnorm",
                 "pyroomacoustics"]:
        try:
            out[name] = __import__("importlib.metadata").metadata.version(name)
        except ModuleNotFoundError:
            pass
    return out


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def spread(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def table(results, libraries):
    print("| effect | stage, ms | " + " | ".join(f"{name}, ms | of" for name in libraries) + " |")
    print("|---" * (2 + 2 * len(libraries)) + "|")
    for name, times in results.items():
        cells = [name, spread(times["go"])]
        for library in libraries:
            if library in times:
                ratios = [a / b for a, b in zip(times[library], times["go"])]
                cells += [spread(times[library]), f"{statistics.median(ratios):.1f}"]
            else:
                cells += ["", ""]
        print("| " + " | ".join(cells) + " |")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--only", default="", help="effects, separated by commas")
    arguments.add_argument("--json", help="a file for all times")
    given = arguments.parse_args()
    clip = speech(SECONDS * RATE)
    with tempfile.TemporaryDirectory() as folder:
        recordings(folder)
        go = Go(folder)
        effects = effects_of(folder, RATE)
        if given.only:
            effects = {name: effects[name] for name in given.only.split(",")}
        results = {name: {} for name in effects}
        for round_ in range(given.rounds):
            for name, functions in effects.items():
                programs = [("go", None), *functions.items()]
                programs = programs[round_ % len(programs):] + programs[: round_ % len(programs)]
                for program, function in programs:
                    spent = go.measure(name) if program == "go" else measure(function, clip.copy())
                    results[name].setdefault(program, []).append(spent)
            print(f"round {round_ + 1} of {given.rounds}", file=sys.stderr)
    libraries = [x for x in ["audiomentations", "librosa", "torchaudio", "pyroomacoustics"] if any(x in r for r in results.values())]
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps({"versions": versions(), "ms": results}, indent=1) + "\n")
    print(", ".join(f"{k} {v}" for k, v in versions().items()), "\n")
    table(results, libraries)


if __name__ == "__main__":
    main()
