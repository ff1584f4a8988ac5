"""What a stage in Python costs over its NumPy: 16 rows of 66,150 samples (3 s at 22,050 Hz), in a process of its own.

    .cache/venv-plugin/bin/python shared/python/bench.py [CALLS]

There are two stages: a gain, which is the cheapest that there is, and a filter, by a Fourier transform of each row.

For each call it measures the same work in this process (numpy), what the plugin measures of its stage (stage), and the time
of the call here (call), with the cost of gRPC in both processes. It prints the median of each, with the tenth and the
ninetieth percentile, and the ratio of the medians to that of numpy.
"""
import os
import queue
import subprocess
import sys
import tempfile
import textwrap
import time

import grpc
import numpy as np

from xtts_plugin import stage_pb2 as pb
from xtts_plugin.ring import Ring

ROWS, SAMPLES, SLOTS = 16, 66150, 8
OFFSET = 256  # of the waveform in a slot, after the lengths
SLOT = -(-(OFFSET + 4 * ROWS * SAMPLES + 64) // 256) * 256

PLUGIN = """
from xtts_plugin import Stage, serve
from work import filter, gain

class Bench(Stage):
    def configure(self, config):
        self.work = {"gain": gain, "filter": filter}[config.name]

    def process(self, batch):
        for row in batch.rows():
            self.work(row["waveform"], row.draws.uniform(0.999, 1.001))

serve(gain=Bench)
"""
WORK = """
import numpy as np

SLOPE = np.linspace(1, 0.9, 33076, dtype="f4")

def gain(wave, amount):
    wave *= amount

def filter(wave, amount):
    wave[:] = np.fft.irfft(np.fft.rfft(wave) * (SLOPE * amount), len(wave))
"""
MANIFEST = """
{"id": "bench", "version": "1", "protocol": 1, "argv": ["python3", "plugin.py"], "stages": [{"name": "gain",
 "kind": "augment", "inputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"], "lengths": "n"},
 {"name": "n", "dtype": "i32", "shape": ["B"]}], "outputs": [{"name": "waveform", "dtype": "f32",
 "shape": ["B", "T_wav"], "lengths": "n"}]}]}
"""


def start(folder, ring, lifeline):
    """Starts the plugin, and returns its process and a channel to it."""
    for name, text in (("plugin.py", PLUGIN), ("work.py", WORK), ("plugin.json", MANIFEST)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
    environment = {**os.environ, "XTTS_HOST_PLUGIN": "9c1f6c0e5d7a4b61", "PLUGIN_UNIX_SOCKET_DIR": folder}
    shell = ["bash", "-c", f"exec {sys.executable} plugin.py 3<&{ring} 4<&{lifeline}"]
    process = subprocess.Popen(shell, cwd=folder, env=environment, stdout=subprocess.PIPE, pass_fds=(ring, lifeline))
    socket = process.stdout.readline().decode().split("|")[3]
    return process, grpc.insecure_channel("unix:" + socket)


def configure(channel):
    request = pb.ConfigureRequest()
    ports = {"waveform": "waveform", "n": "n"}
    for name in ("gain", "filter"):
        request.instances.add(name=name, stage="gain", inputs=ports, outputs={"waveform": "waveform"})
    layout = request.layouts.add()
    layout.tensors.add(name="n", dtype="i32", shape=[ROWS])
    layout.tensors.add(name="waveform", dtype="f32", shape=[ROWS, SAMPLES], offset=OFFSET)
    for method, message in (("Configure", request), ("Attach", pb.AttachRequest(slots=SLOTS, slot_size=SLOT))):
        channel.unary_unary(f"/xtts.stage.v1.Stage/{method}", type(message).SerializeToString)(message)


def fill(ring):
    """The waveforms of the slots."""
    waves = []
    for slot in range(SLOTS):
        np.frombuffer(ring.memory, "<i4", ROWS, slot * SLOT)[:] = SAMPLES
        wave = np.frombuffer(ring.memory, "<f4", ROWS * SAMPLES, slot * SLOT + OFFSET).reshape(ROWS, SAMPLES)
        wave[:] = np.random.default_rng(slot).uniform(-1, 1, wave.shape)
        waves.append(wave)
    return waves


def alone(work, wave):
    """The time of the same work in this process."""
    gains = np.random.default_rng().uniform(0.999, 1.001, ROWS).tolist()
    began = time.perf_counter()
    for row, gain in enumerate(gains):
        work(wave[row], gain)
    return time.perf_counter() - began


def show(name, seconds, base=None):
    low, middle, high = np.percentile(np.array(seconds) * 1e6, [10, 50, 90])
    ratio = f", {middle / (np.median(base) * 1e6):.2f} of numpy" if base is not None else ""
    print(f"{name:8} {middle:7.0f} us ({low:.0f} to {high:.0f}){ratio}")


def measure(instance, work, waves, sent, results, calls):
    keys = os.urandom(16 * ROWS)

    def send(i):
        sent.put(pb.Call(id=i, instance=instance, slot=i % SLOTS, row_keys=keys))

    numpy, stage, whole = [], [], []
    for i in range(calls):
        numpy.append(alone(work, waves[i % SLOTS]))
        began = time.perf_counter()
        send(i)
        result = next(results)
        whole.append(time.perf_counter() - began)
        assert not result.error, result.error
        stage.append(result.nanoseconds / 1e9)
    show("numpy", numpy)
    show("stage", stage, numpy)
    show("call", whole, numpy)


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    fd, (end, _lifeline) = os.memfd_create("ring"), os.pipe()
    os.truncate(fd, SLOTS * SLOT)
    waves, work = fill(Ring(fd, SLOTS, SLOT)), {}
    exec(WORK, work)
    with tempfile.TemporaryDirectory() as folder:
        process, channel = start(folder, fd, end)
        configure(channel)
        sent = queue.SimpleQueue()
        results = channel.stream_stream("/xtts.stage.v1.Stage/Process", pb.Call.SerializeToString,
                                        pb.Result.FromString)(iter(sent.get, None))
        for instance, name in enumerate(("gain", "filter")):
            print(name)
            measure(instance, work[name], waves, sent, results, calls if name == "gain" else calls // 10)
        process.kill()
        process.wait()


main()
