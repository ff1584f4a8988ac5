"""Runs the tests and benchmarks that need a GPU, section by section, and joins their figures: see scripts/gpu-suite.sh."""

import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

# How many minutes each section may take, unless SECTIONS says otherwise.
MINUTES = {"tests": 3, "losses": 4, "bench": 9, "cap": 4, "faults": 5, "torture": 4, "latency": 2, "bf16": 9}

TESTS = [  # binary of the kit, the package's folder, which tests, which benchmarks
    ("cuda", "gpu/cuda", "TestContext", "^$"),
    ("train", "host/train", "Parity|Accumulation|EmptyRows|SGD|OptimizerState|SeedDrivesDropout|Ahead|Fused", "Timer|Update"),
    ("logmel", "plugins/features/logmel", "GPU", "GPU"),
    ("waveaug", "plugins/augment/waveaug", "GPU", "Waveaug"),
    ("specaugment", "plugins/augment/specaugment", "GPU", "Specaugment"),
]


# What must be known to be true; the figures of a fake or of a driver that hides processes may be missing.
MUST = {f"{run}_equals_whole" for run in ("plugin_killed", "slow_copies", "terminated", "killed")} | {
    "scorched_equals_scorched_before", "deterministic_graphs_equal_eager"}


def setting(name, default):
    return type(default)(os.environ.get(name, default))


def draw_weights(folder):
    """Draws the weights of a bundle that has come without: norms pass everything, matrices are small."""
    import numpy as np

    bundle = json.loads((folder / "bundle.json").read_text())
    random, header, parts, at = np.random.default_rng(0), {}, [], 0
    for p in bundle["parameters"]:
        shape = p["shape"]
        if len(shape) > 1:
            x = random.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        else:
            x = np.full(shape, "norm" in p["name"] and p["name"].endswith("weight"), np.float32)
        header[p["name"]] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + x.nbytes]}
        parts.append(x.tobytes())
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join([len(text).to_bytes(8, "little"), text, *parts])
    (folder / "params.safetensors").write_bytes(data)
    bundle["files"]["params.safetensors"] = hashlib.sha256(data).hexdigest()
    (folder / "bundle.json").write_text(json.dumps(bundle))


def processes_on_gpus():
    """By UUID, the ids of the processes that have a context there. None where the machine has no tool that says so."""
    try:
        out = subprocess.run(["nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    found = {}
    for line in out.stdout.splitlines():
        uuid, _, pid = line.partition(", ")
        if pid.strip().isdigit():
            found.setdefault(uuid, set()).add(int(pid))
    return found if out.returncode == 0 else None


def children(pid):
    """The ids of all processes below one."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it has ended
    found, new = set(), {pid}
    while new:
        new = {p for p, parent in parents.items() if parent in new} - found
        found |= new
    return found


class Points(threading.Thread):
    """Listens to the points that a run with --debug-dir comes to (docs/torture.md), notes when, and holds it at each copy for up to `hold` seconds."""

    def __init__(self, folder, hold=0.0):
        super().__init__(daemon=True)
        self.flags, self.hold, self.seen, self.draw = ["--debug-dir", folder], hold, [], random.Random(1)
        folder.mkdir()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "phases.sock"))
        self.listener.listen(1)
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile("r") as lines:
            try:
                for line in lines:
                    point = json.loads(line)
                    self.seen.append((time.monotonic(), point))
                    if point["phase"] == "copy":
                        time.sleep(self.draw.uniform(0, self.hold))
                    connection.sendall(b"\n")
            except OSError:
                pass  # the run was killed

    def back(self, pid, since):
        """How many seconds behind `since` the successor of a plugin's process gave its first result; None when there was none."""
        name = next((p["plugin"] for _, p in self.seen if p.get("pid") == pid), None)
        return next((at - since for at, p in self.seen if at > since and p["phase"] == "reply" and p.get("plugin") == name and p["generation"] > 0), None)


class Section:
    """One part of the suite: its commands, what they gave, and the time that is left."""

    def __init__(self, name, minutes, suite):
        self.name, self.suite = name, suite
        self.began = time.monotonic()
        self.deadline = self.began + 60 * minutes
        self.result = {"name": name, "minutes": minutes, **suite.machine, "commands": {}}

    def left(self):
        return max(0.0, self.deadline - time.monotonic())

    def command(self, name, args, want=0, folder=None, watch=None, stdout=None):
        """Runs a command and returns its output. It is interrupted shortly before the time is over, and says what it has. watch(process) runs
        beside it, in a thread of its own. The file `stdout` takes the standard output apart from the rest."""
        if self.left() < 10:
            self.result["commands"][name] = {"exit_status": None, "problem": "no time left for it"}
            return ""
        print(f"== {self.name}: {name}", file=sys.stderr, flush=True)
        began = time.monotonic()
        log = self.suite.work / f"{name}.txt"
        with log.open("w") as said, open(stdout or os.devnull, "w") as apart:
            process = subprocess.Popen([str(a) for a in args], stdout=apart if stdout else said, stderr=said, cwd=folder, env=self.suite.environment)
            watcher = threading.Thread(target=watch, args=(process,)) if watch else None
            if watcher:
                watcher.start()
            late = None
            for after, sign in ((max(5.0, self.left() - 30), signal.SIGINT), (20, signal.SIGKILL), (10, None)):
                try:
                    process.wait(after)
                    break
                except subprocess.TimeoutExpired:
                    late = "stopped: its time was over"
                    process.send_signal(sign or signal.SIGKILL)
            if watcher:
                watcher.join()
        text = log.read_text(errors="replace")
        print("\n".join(text.splitlines()[-25:]), file=sys.stderr, flush=True)
        entry = {"exit_status": process.returncode, "seconds": round(time.monotonic() - began, 1)}
        if late:
            entry["problem"] = late
        elif process.returncode not in (want if isinstance(want, tuple) else (want,)):
            entry["problem"] = f"exit status {want} was expected"
            entry["output"] = text[-2000:]
        self.result["commands"][name] = entry
        return text

    def train(self, name, *flags, steps=None, resume=False, **more):
        """A run of training, whose folder has the command's name."""
        steps = steps or self.suite.steps
        where = ["--resume" if resume else "--run-dir", self.suite.work / name.removesuffix("-resumed")]
        return self.command(name, [self.suite.host, *self.suite.graph, *where, "--max-steps", steps, "--epochs", 100000, "--batch-size", 8,
                                   "--eval-every", 100000, "--log-every", 0, *flags], **more)

    def losses(self, run):
        file = self.suite.work / run / "metrics.jsonl"
        return [json.loads(line)["loss"] for line in file.open()] if file.exists() else None

    def report(self, run, *keys):
        file = self.suite.work / run / "report.json"
        report = json.loads(file.read_text()) if file.exists() else {}
        return {key: report.get(key) for key in keys}

    def equal(self, a, b):
        """Whether two runs had the same losses, bit for bit; None when one has none."""
        a, b = self.losses(a), self.losses(b)
        return a == b if a and b else None

    def apart(self, a, b):
        a, b = self.losses(a), self.losses(b)
        return max(abs(x - y) / abs(y) for x, y in zip(a, b)) if a and b else None

    def tests(self):
        for name, folder, which, bench in TESTS:
            text = self.command(name, [self.suite.kit / f"{name}.test", "-test.v", "-test.run", which, "-test.bench", bench, "-test.benchtime", setting("BENCHTIME", "200x")], folder=folder)
            self.result[name] = [line.strip() for line in text.splitlines() if "--- " in line or "relative error" in line or "ns/op" in line]

    def runs_compared(self):
        serial = ["--buffer-size", 1, "--num-workers", 1, "--slots", 2, "--cuda-graphs", "off"]
        never = ["--checkpoint-every", 0]
        self.train("deterministic-graphs", "--deterministic", *never)
        self.train("deterministic-eager", "--deterministic", *serial, *never)
        self.train("serial-1", *serial, *never)
        self.train("serial-2", *serial, *never)
        self.train("pipelined", *never)
        self.result["deterministic_graphs_equal_eager"] = self.equal("deterministic-graphs", "deterministic-eager")
        self.result["serial_runs_apart"] = self.apart("serial-1", "serial-2")
        self.result["pipelined_apart_from_serial"] = self.apart("pipelined", "serial-1")
        if self.suite.two:
            self.train("data-0-model-1", "--deterministic", "--data-gpu", 0, "--model-gpu", 1, *never)
            self.train("data-1-model-0", "--deterministic", "--data-gpu", 1, "--model-gpu", 0, *never)
            self.result["data_0_model_1_equals_data_1_model_0"] = self.equal("data-0-model-1", "data-1-model-0")
            self.train("pipelined-two-gpus", "--data-gpu", 0, "--model-gpu", 1, *never)
            # Features that a GPU computes are not those of the CPU to the last bit.
            self.result["two_gpus_apart_from_one"] = self.apart("data-0-model-1", "deterministic-graphs")
        runs = sorted(name for name in self.result["commands"] if self.losses(name))
        self.result["runs"] = {name: self.report(name, "device", "steps", "steps_per_second", "step_ms", "input_stall_ratio", "transfer_hidden_ratio", "memory", "utilization", "verdict") for name in runs}

    def bench(self):
        workers, file = os.cpu_count() // 2 or 1, self.suite.work / "bench.json"
        self.command("bench", [
            self.suite.host, "bench", *self.suite.graph, "--batch-sizes", setting("BATCH_SIZES", "8,16,32,64,128"), "--bench-steps", self.suite.steps,
            "--bench-rounds", setting("ROUNDS", 1), "--feedings", setting("FEEDINGS", "compute,synchronous,double,triple"), "--json", "--num-workers", workers, "--plugin-workers", f"features={setting('PLUGIN_WORKERS', workers)}"], stdout=file)
        text = file.read_text() if file.exists() else ""
        self.result["bench"] = json.loads(text) if text else None

    def cap(self):
        """Memory stays below its limit, and nobody is on a GPU who has no business there."""
        limit = setting("CAP_MB", 12000)
        isolated = ["--enable-memory-isolation", "--checkpoint-every", 0]
        where = ["--data-gpu", 0, "--model-gpu", 1, "--data-gpu-memory", setting("CAP_DATA_MB", "auto")] if self.suite.two else []
        batch = setting("CAP_BATCH", 0) or self.largest(128, *where, *isolated, "--model-gpu-memory", limit)
        isolated += ["--batch-size", batch]
        before, seen = processes_on_gpus(), {}

        def look(process):
            while process.poll() is None:
                ours = children(process.pid)
                for uuid, pids in (processes_on_gpus() or {}).items():
                    for pid in pids - before.get(uuid, set()):
                        who = "host" if pid == process.pid else "plugin" if pid in ours else "stranger"
                        seen.setdefault(uuid, set()).add(who)
                time.sleep(1)

        if before is None:
            look, seen = None, None
        self.train("cap", *where, *isolated, "--model-gpu-memory", limit, steps=setting("CAP_STEPS", 1000), watch=look)
        told = self.report("cap", "steps", "memory", "verdict")
        peaks = {m["role"]: m.get("process_peak_bytes", 0) >> 20 for m in told["memory"] or [] if m["device"] != "cpu"}
        limits = {m["role"]: m.get("limit_bytes", 0) >> 20 for m in told["memory"] or [] if m["device"] != "cpu"}
        self.result |= {"steps": told["steps"], "batch_size": batch, "limit_mb": limits, "peak_mb": peaks,
                        "peaks_below_limits": all(peaks[role] <= limits[role] for role in peaks) if peaks else None}
        if seen is None:
            self.result["processes"] = "not asked for: no nvidia-smi"
        else:
            uuids = [card["uuid"] for card in self.suite.cards]
            model, data = (uuids[1], uuids[0]) if self.suite.two else (uuids[0], None)
            right = seen.get(model) == {"host"} and seen.get(data, set()) <= {"plugin"} and set(seen) <= {model, data}
            self.result |= {"processes": {uuid: sorted(who) for uuid, who in seen.items()}, "processes_as_declared": right if seen else None}
        # One limit that holds nothing, and one that holds the weights and not the step.
        for name, mb in ("refused-outright", 100), ("refused-by-trial", peaks.get("model", 0) * 6 // 10):
            if mb:
                text = self.train(name, *where, *isolated, "--model-gpu-memory", mb, want=3)
                self.result[name.replace("-", "_")] = text[text.find("error: "):].splitlines()[:12]

    def largest(self, batch, *flags):
        """The largest batch that starts, of up to `batch` rows: what the refusal of that many names. That of one row more is to name the same."""

        def named(n):
            text = self.train(f"batch-{n}", *flags, "--batch-size", n, steps=1, want=(0, 3))
            if self.result["commands"][f"batch-{n}"]["exit_status"] == 0:
                return n
            hint = re.search(r"--batch-size (\d+), the largest that fits", text)
            if not hint:
                raise RuntimeError(f"no batch is named that fits, instead of {n} rows")
            return int(hint[1])

        largest = named(batch)
        if largest < batch:
            self.result["largest_batch_is_named"] = named(largest + 1) == largest
        return largest

    def faults(self):
        """A run goes on as if nothing had happened."""
        flags = ["--deterministic", "--checkpoint-every", 50]
        steps = max(200, self.suite.steps)
        where = ["--data-gpu", 0, "--model-gpu", int(self.suite.two)]
        self.train("whole", *flags, *where, steps=steps)

        def strike(run, blow):
            def wait(process):
                file = self.suite.work / run / "metrics.jsonl"
                while process.poll() is None:
                    if file.exists() and file.read_bytes().count(b"\n") > steps // 3:
                        return blow(process)
                    time.sleep(0.005)

            return wait

        points, killed = Points(self.suite.work / "points"), []

        def kill_plugin(process):
            pid = min(children(process.pid), default=None)
            if pid:
                os.kill(pid, signal.SIGKILL)
                killed.append((pid, time.monotonic()))

        self.train("plugin-killed", *flags, *points.flags, *where, steps=steps, watch=strike("plugin-killed", kill_plugin))
        if killed:
            self.result["killed_plugin_is_back_in_s"] = points.back(*killed[0])
            waits = [json.loads(line)["input_wait_ms"] for line in (self.suite.work / "plugin-killed" / "metrics.jsonl").open()]
            self.result["longest_wait_for_a_batch_ms"] = max(waits[1:], default=None)
        self.train("slow-copies", *flags, *where, *Points(self.suite.work / "slow", 0.02).flags, steps=steps)
        # A plugin's process loses its context of the GPU; one has done so already in the run that this is compared with.
        for name, marks in ("scorched-before", ["scorched"]), ("scorched", []):
            folder = pathlib.Path(self.suite.environment.setdefault("XTTS_PLUGIN_FAULT_MARKS", str(self.suite.work / "marks")))
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for mark in marks:
                (folder / mark).touch()
            self.train(name, *flags, *where, "--augment", "scorch", steps=steps)
        self.result["scorched_equals_scorched_before"] = self.equal("scorched", "scorched-before")
        self.result["restarts_when_scorched"] = {p["id"]: p["restarts"] for p in self.report("scorched", "plugins")["plugins"] or []}
        self.train("terminated", *flags, *where, steps=steps, want=130, watch=strike("terminated", lambda p: p.send_signal(signal.SIGTERM)))
        self.train("terminated-resumed", *flags, *where, steps=steps, resume=True)
        self.train("killed", *flags, *where, steps=steps, want=-signal.SIGKILL, watch=strike("killed", lambda p: p.kill()))
        self.train("killed-resumed", *flags, *where, steps=steps, resume=True)
        self.train("one-flag", "--data-gpu", 0, want=2)
        self.train("no-such-gpu", "--data-gpu", "cpu", "--model-gpu", 99, want=2)
        self.result |= {f"{run.replace('-', '_')}_equals_whole": self.equal(run, "whole") for run in ("plugin-killed", "slow-copies", "terminated", "killed")}
        plugins = self.report("plugin-killed", "plugins")["plugins"] or []
        self.result["restarts_of_the_killed_plugin"] = sum(p["restarts"] for p in plugins)
        self.result["every_fault_struck"] = len(killed) == 1 and self.result["restarts_of_the_killed_plugin"] == 1 and self.result["restarts_when_scorched"].get("gpufault") == 1

    def torture(self):
        """scripts/torture, on GPUs: the host or a plugin is struck at every point of the protocol."""
        settings = {"DEVICE": "cuda", "DETERMINISTIC": "true", "DATA_GPU": 0, "MODEL_GPU": int(self.suite.two)}
        environment = [f"XTTS_HOST_{name}={value}" for name, value in settings.items()]
        environment += [f"{name}={os.environ[name]}" for name in os.environ if name.startswith(("XTTS_HOST_ORT_LIB", "XTTS_HOST_TEST_FAKE_", "LD_LIBRARY_PATH"))]
        args = [self.suite.kit / "torture", "-host", self.suite.host, "-plugins", self.suite.kit / "plugins", "-kills", setting("KILLS", 26), "-jobs", setting("JOBS", 4)]
        text = self.command("torture", args + [arg for value in environment for arg in ("-env", value)])
        self.result["torture"] = text[text.find("\n\n"):].splitlines() if "\n\n" in text else []

    def latency(self):
        """What a batch and a step cost outside the graphs."""
        text = self.command("upload", [self.suite.kit / "cuda.test", "-test.run", "^$", "-test.bench", "Upload", "-test.benchtime", "2000x"], folder="gpu/cuda")
        for name, figures in re.findall(r"^Benchmark(\S+)\s+\d+\s+(.*)$", text, re.M):
            self.result[name] = {unit: float(value) for value, unit in re.findall(r"([\d.e+]+) (\S+)", figures)}
        self.train("steps", "--checkpoint-every", 0, "--enable-static-shapes")
        told = self.report("steps", "phases_ms", "input_stall_ratio", "transfer_hidden_ratio", "step_ms")
        phases = told["phases_ms"] or {}
        self.result |= told
        if phases:
            self.result["host_ms_per_step"] = phases["wait"] + phases["other"]

    def bf16(self):
        """Training in bf16: losses beside PyTorch's autocast, the same bits again and after a resumption, memory below its limit."""
        for folder in self.suite.bundles:
            name = folder.name
            shutil.rmtree(self.suite.work / "bundle-bf16", ignore_errors=True)
            bundle = self.suite.work / "bundle-bf16" / name
            shutil.copytree(folder, bundle)
            draw_weights(bundle)
            where, mixed = ["--graph", bundle], ["--precision", "bf16"]
            found = self.result[name] = {"torch": self.beside_torch(name, bundle, where)}
            # Step times, without batches being written; and the bits under --deterministic.
            steps, half = setting("BF16_STEPS", 100), setting("BF16_HALF", 20)
            for precision in ("bf16", "tf32"):
                self.train(f"{name}-{precision}-timed", *where, "--precision", precision, "--checkpoint-every", 0, steps=steps)
                found[precision] = self.report(f"{name}-{precision}-timed", "step_ms", "memory")
            exact = [*where, *mixed, "--deterministic", "--schedule", "constant"]
            self.train(f"{name}-whole", *exact, steps=2 * half)
            self.train(f"{name}-halved", *exact, steps=half)
            first, whole = self.losses(f"{name}-halved"), self.losses(f"{name}-whole")
            self.result[f"{name}_again_has_the_same_bits"] = bool(first and whole) and first == whole[:half]
            self.train(f"{name}-halved-resumed", *exact, steps=2 * half, resume=True)
            self.result[f"{name}_resumed_equals_whole"] = bool(self.equal(f"{name}-halved", f"{name}-whole"))
            self.held(name, where + mixed)

    def beside_torch(self, name, bundle, where):
        """Trains in bf16, and again in PyTorch under autocast on the same batches; returns what it says of the losses."""
        debug, file = self.suite.work / f"{name}-debug", self.suite.work / f"{name}-torch.json"
        (debug / "batches").mkdir(parents=True)
        self.train(f"{name}-bf16", *where, "--precision", "bf16", "--debug-dir", debug, "--checkpoint-every", 0, steps=setting("BF16_STEPS", 100))
        rerun = [sys.executable, "-m", "export.baseline.rerun", self.suite.work / f"{name}-bf16", "--bundle", bundle, "--batches", debug / "batches", "--precision", "bf16"]
        self.command(f"{name}-torch", [*rerun, *setting("RERUN_FLAGS", "").split()], want=(0, 1), folder=pathlib.Path("scripts"), stdout=file)
        shutil.rmtree(debug)
        text = file.read_text() if file.exists() else ""
        outcome = json.loads(text) if text else {}
        self.result[f"{name}_losses_within_limit"] = outcome.get("within", False)
        return outcome

    def held(self, name, where):
        """The plan of the memory is right: a run that it lets begin stays below its limit, by the driver."""
        taken = self.report(f"{name}-bf16", "memory")["memory"] or []
        peak = max((m.get("process_peak_bytes", 0) >> 20 for m in taken if m["role"] == "model" and m["device"] != "cpu"), default=0)
        if not peak:
            return
        isolated = [*where, "--enable-memory-isolation", "--checkpoint-every", 0, "--data-gpu", "cpu", "--model-gpu", 0]
        limit = peak * 5 // 4
        self.train(f"{name}-held", *isolated, "--model-gpu-memory", limit, steps=setting("BF16_HALF", 20))
        held = self.report(f"{name}-held", "memory")["memory"] or []
        peaks = [m.get("process_peak_bytes", 0) >> 20 for m in held if m["role"] == "model" and m["device"] != "cpu"]
        self.result[f"{name}_below_its_limit"] = max(peaks) <= limit if peaks else None
        text = self.train(f"{name}-refused", *isolated, "--model-gpu-memory", 930, steps=1, want=(0, 3))
        self.result[name] |= {"limit_mb": limit, "held_mb": peaks, "refused": text[text.find("error: "):].splitlines()[:9]}

    run = {"tests": tests, "losses": runs_compared, "bench": bench, "cap": cap, "faults": faults, "torture": torture, "latency": latency, "bf16": bf16}


class Suite:
    """The kit, the machine, and a folder for what the commands write."""

    def __init__(self, kit, work):
        self.kit, self.work, self.host = kit, work, kit / "xtts-host"
        self.steps, self.graph = setting("STEPS", 200), []
        self.bundles = [f for f in sorted((kit / "bf16").glob("*")) if f.name in setting("BF16", f.name).split()]
        self.environment = os.environ | {"XTTS_HOST_CACHE_DIR": str(work / "cache"), "XTTS_HOST_PLUGINS": str(kit / "plugins"),
                                         "XTTS_HOST_DEVICE": "cuda", "ORT_DISABLE_TELEMETRY": "1"}
        # doctor sees GPUs as training does; what else it finds wrong, the commands will say.
        doctor = subprocess.run([self.host, "doctor", "--json"], capture_output=True, text=True, env=self.environment)
        lines = [f["text"] for s in json.loads(doctor.stdout)["sections"] for f in s["findings"]]
        cards = [re.match(r"GPU \d+ \((.*), (GPU-[0-9a-f-]+)\) at ", line) for line in lines]
        self.cards = [{"name": c[1], "uuid": c[2]} for c in cards if c]
        if not self.cards:
            sys.exit("error: no GPU found\n" + doctor.stdout)
        self.two = len(self.cards) >= 2
        self.environment["XTTS_HOST_TEST_GPU"] = self.cards[0]["uuid"]
        driver = [re.search(r"NVIDIA driver (\S+?),", line) for line in lines]
        self.machine = {"gpus": [c["name"] for c in self.cards], "driver": next((d[1] for d in driver if d), None), "cores": os.cpu_count(),
                        "commit": (kit / "commit").read_text().strip()}
        if (kit / "bundle").is_dir():
            shutil.copytree(kit / "bundle", work / "bundle")
            draw_weights(work / "bundle")
            self.graph = ["--graph", work / "bundle"]


def run(kit, out):
    """Runs the sections of SECTIONS. The file is whole behind each of them."""
    asked = []
    for word in os.environ.get("SECTIONS", " ".join(MINUTES)).split():
        name, _, minutes = word.partition("=")
        if name not in MINUTES:
            sys.exit(f"error: SECTIONS: {name} is none of {' '.join(MINUTES)}")
        asked.append((name, float(minutes or MINUTES[name])))
    with tempfile.TemporaryDirectory(prefix="gpu-suite-") as work:
        suite = Suite(pathlib.Path(kit).resolve(), pathlib.Path(work))
        sections = []
        for name, minutes in asked:
            section = Section(name, minutes, suite)
            try:
                Section.run[name](section)
            except Exception as e:  # the other sections are worth having
                section.result["problem"] = f"{type(e).__name__}: {e}"
            section.result["seconds"] = round(time.monotonic() - section.began, 1)
            sections.append(section.result)
            write(out, sections)
    return report(sections)


def merge(out, parts):
    """Joins files of the same commit. A section that is in two of them, on one GPU and on two, is there twice."""
    sections = [section for part in parts for section in json.loads(pathlib.Path(part).read_text())["sections"]]
    commits = {section["commit"] for section in sections}
    if len(commits) != 1:
        sys.exit(f"error: these are of several commits: {', '.join(sorted(commits))}")
    write(out, sections)
    return report(sections)


def write(out, sections):
    file = pathlib.Path(out)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"version": 1, "sections": sections}, indent=1) + "\n")


def report(sections):
    """Names what is wrong, and returns the exit status."""
    bad = 0
    for s in sections:
        where = f"{s['name']} on {len(s['gpus'])} GPU" + "s" * (len(s["gpus"]) > 1)
        problems = [s["problem"]] if "problem" in s else []
        problems += [f"{name}: {c['problem']}" for name, c in s["commands"].items() if "problem" in c]
        problems += [f"{key} is {str(value).lower()}" for key, value in s.items() if value is False or value is None and key in MUST]
        problems += [f"{key}: {line}" for key, lines in s.items() if isinstance(lines, list) for line in lines if str(line).startswith("--- FAIL")]
        for p in problems:
            print(f"error: {where}: {p}", file=sys.stderr)
        bad += len(problems)
        if not problems:
            print(f"{where}: as it should be, in {s['seconds']:.0f} s", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(run(*sys.argv[2:]) if sys.argv[1] == "run" else merge(sys.argv[2], sys.argv[3:]))
