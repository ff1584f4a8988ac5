"""What a stage in Python costs over its NumPy: 16 rows of 66,150 samples (3 s at 22,050 Hz), in a process of its own.

    .cache/venv-plugin/bin/python shared/python/bench.py [CALLS]

There are two stages: a gain, which is the cheapest that there is, and a filter, by a Fourier transform of each row.

For each call it measures the same work in this process (NumPy), what the plugin measures of its stage (stage), and the
time of the call here (call), with the cost of gRPC in both processes. It prints the machine, and a table in Markdown:
the median of each with the tenth and the ninetieth percentile, and the median of its ratios to NumPy beside it. At the
end it prints the plugin's own memory and its page faults. XTTS_PLUGIN_MALLOC=default measures the plugin with the
settings that the C library has by itself.
"""
import os
import platform
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

if __name__ == "__main__":
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
    environment = {**os.environ, "XTTS_HOST_PLUGIN": "9c1f6c0e5d7a4b61", "PLUGIN_UNIX_SOCKET_DIR": folder,
                   "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}  # the package beside this file
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


def machine():
    """The machine, and what runs there."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    malloc = os.environ.get("XTTS_PLUGIN_MALLOC") or "memory is kept"
    return (f"{(models or [platform.machine()])[0]}, {os.cpu_count()} cores; Python {platform.python_version()}, "
            f"NumPy {np.__version__}; {malloc}")


def show(work, name, seconds, base):
    low, middle, high = np.percentile(np.array(seconds) * 1e3, [10, 50, 90])
    ratio = np.median(np.array(seconds) / np.array(base))
    print(f"| {work} | {name} | {middle:.2f} | {low:.2f} to {high:.2f} | {ratio:.2f} |")


def memory(process):
    """The memory that is the plugin's alone, and the faults of its pages, so far."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        [own] = [int(line.split()[1]) >> 10 for line in file if line.startswith("RssAnon")]
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        return own, int(file.read().rpartition(")")[2].split()[7])


def measure(name, instance, work, waves, sent, results, calls):
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
    for what, seconds in (("NumPy", numpy), ("stage", stage), ("call", whole)):
        show(name, what, seconds, numpy)


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
        print(f"{machine()}\n\n| work | time of | ms | from 10 % to 90 % | of NumPy |\n|---|---|---|---|---|")
        for instance, (name, share) in enumerate((("gain", 1), ("filter", 10))):
            before = memory(process)[1]
            measure(name, instance, work[name], waves, sent, results, calls // share)
            own, faults = memory(process)
            last = f"plugin: {own} MiB of its own memory, {(faults - before) * share / calls:.0f} page faults for each call"
        print(f"\n{last} of {name}")
        process.kill()
        process.wait()


main()
