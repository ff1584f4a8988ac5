"""Runs the tests and benchmarks that need a GPU, section by section, and collects their results: see scripts/gpu-suite.sh."""

import hashlib
import json
import os
import pathlib
import queue
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
MINUTES = {"tests": 5, "nccl": 3, "losses": 4, "bench": 9, "cap": 4, "limits": 9, "faults": 5, "torture": 4, "latency": 2, "bf16": 9, "pytorch": 9, "memory": 6}

TESTS = [  # binary of the kit, the package's folder, which tests, which benchmarks
    ("cuda", "gpu/cuda", "TestContext", "^$"),
    ("train", "host/train", "Parity|Accumulation|EmptyRows|SGD|OptimizerState|SeedDrivesDropout|Ahead|UpdateKernel|SquaresKernel|WeighKernel", "Timer|Update"),
    ("fuse", "ortgraphs/fuse", "GPU", "^$"),
    ("kernels", "host/train/kernels", "GPU", "^$"),
    ("logmel", "plugins/features/logmel", "GPU", "GPU"),
    ("waveaug", "plugins/augment/waveaug", "GPU", "Waveaug"),
    ("specaugment", "plugins/augment/specaugment", "GPU", "Specaugment"),
    ("frozen", "plugins/inference/frozen", "GPU", "GPU"),  # with a bundle of XTTS v2, also its own graphs
]


# Checks that must have a result. Others may be missing, with a fake driver or with a driver that hides processes.
MUST = {f"{run}_equals_whole" for run in ("plugin_killed", "slow_copies", "terminated", "killed")} | {
    "context_lost_equals_context_lost_before", "deterministic_graphs_equal_eager"}


def setting(name, default):
    return type(default)(os.environ.get(name, default))


def draw_weights(folder):
    """Draws random weights for a bundle that was packed without them: ones for the weights of norms and for state, small values for matrices."""
    import numpy as np

    bundle = json.loads((folder / "bundle.json").read_text())
    random, header, parts, at = np.random.default_rng(0), {}, [], 0
    for p in [*bundle["parameters"], *bundle.get("state", [])]:
        shape = p["shape"]
        if p in bundle.get("state", []):
            x = np.ones(shape, np.float32)
        elif len(shape) > 1:
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
    """Returns the ids of the processes that have a CUDA context, by the GPU's UUID. None if nvidia-smi is missing or fails."""
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
    """Returns the ids of all descendants of a process."""
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
    """Records when a run with --debug-dir reaches each phase (docs/torture.md), and delays every copy by up to `hold` seconds."""

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

    def replaced_after(self, pid, since):
        """Returns the seconds from `since` to the first result of the process that replaced a plugin process; None if there was none."""
        name = next((p["plugin"] for _, p in self.seen if p.get("pid") == pid), None)
        return next((at - since for at, p in self.seen if at > since and p["phase"] == "reply" and p.get("plugin") == name and p["generation"] > 0), None)


class Section:
    """One part of the suite: its commands, their results, and the time that is left."""

    def __init__(self, name, minutes, suite):
        self.name, self.suite = name, suite
        self.began = time.monotonic()
        self.deadline = self.began + 60 * minutes
        self.result = {"name": name, "minutes": minutes, **suite.machine, "commands": {}}

    def left(self):
        return max(0.0, self.deadline - time.monotonic())

    def command(self, name, args, want=0, folder=None, watch=None, stdout=None):
        """Runs a command and returns its output. Shortly before the section's time is over it is interrupted, and reports what it
        has. watch(process) runs in another thread at the same time. The standard output goes to the file `stdout`, if given."""
        if self.left() < 10:
            self.result["commands"][name] = {"exit_status": None, "problem": "skipped: time limit"}
            return ""
        print(f"== {self.name}: {name}", file=sys.stderr, flush=True)
        began = time.monotonic()
        log = self.suite.work / f"{name}.txt"
        with log.open("w") as output, open(stdout or os.devnull, "w") as separate:
            process = subprocess.Popen([str(a) for a in args], stdout=separate if stdout else output, stderr=output, cwd=folder, env=self.suite.environment)
            watcher = threading.Thread(target=watch, args=(process,)) if watch else None
            if watcher:
                watcher.start()
            late = None
            for after, number in ((max(5.0, self.left() - 30), signal.SIGINT), (20, signal.SIGKILL), (10, None)):
                try:
                    process.wait(after)
                    break
                except subprocess.TimeoutExpired:
                    late = "stopped: the time of its section was over"
                    process.send_signal(number or signal.SIGKILL)
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
        """Trains. The run folder has the command's name."""
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
        """Reports whether two runs have the same losses, bit for bit; None if one has no losses."""
        a, b = self.losses(a), self.losses(b)
        return a == b if a and b else None

    def difference(self, a, b):
        """Returns the largest relative difference of the losses of two runs."""
        a, b = self.losses(a), self.losses(b)
        return max(abs(x - y) / abs(y) for x, y in zip(a, b)) if a and b else None

    def tests(self):
        for name, folder, which, bench in TESTS:
            text = self.command(name, [self.suite.kit / f"{name}.test", "-test.v", "-test.run", which, "-test.bench", bench, "-test.benchtime", setting("BENCHTIME", "200x")], folder=folder)
            self.result[name] = [line.strip() for line in text.splitlines() if "--- " in line or "relative error" in line or "codes differ" in line or "ns/op" in line]

    def nccl(self):
        """Two processes add up on two GPUs: the bits are those of the CPU, also from a captured graph, and the death of one leaves the other able to end."""
        if not self.suite.two:
            self.result["skipped"] = f"it needs two GPUs, and {len(self.suite.cards)} is there"
            return
        text = self.command("nccl", [self.suite.kit / "nccl.test", "-test.v", "-test.run", "TestSums|TestDeath"], folder="gpu/nccl")
        self.result["nccl"] = [line.strip() for line in text.splitlines() if line.startswith("--- ") or re.match(r"NCCL |rank \d has |the other rank ", line)]
        # A test without its GPUs skips itself, and the binary passes.
        self.result["nccl_tests_passed"] = all(f"--- PASS: {name} " in text for name in ("TestSums", "TestDeath"))

    def runs_compared(self):
        serial = ["--buffer-size", 1, "--num-workers", 1, "--slots", 2, "--cuda-graphs", "off"]
        never = ["--checkpoint-every", 0]
        self.train("deterministic-graphs", "--deterministic", *never)
        self.train("deterministic-eager", "--deterministic", *serial, *never)
        self.train("serial-1", *serial, *never)
        self.train("serial-2", *serial, *never)
        self.train("pipelined", *never)
        self.result["deterministic_graphs_equal_eager"] = self.equal("deterministic-graphs", "deterministic-eager")
        self.result["serial_runs_difference"] = self.difference("serial-1", "serial-2")
        self.result["pipelined_difference_from_serial"] = self.difference("pipelined", "serial-1")
        if self.suite.two:
            self.train("data-0-model-1", "--deterministic", "--data-gpu", self.suite.first, "--model-gpu", self.suite.second, *never)
            self.train("data-1-model-0", "--deterministic", "--data-gpu", self.suite.second, "--model-gpu", self.suite.first, *never)
            self.result["data_0_model_1_equals_data_1_model_0"] = self.equal("data-0-model-1", "data-1-model-0")
            self.train("pipelined-two-gpus", "--data-gpu", self.suite.first, "--model-gpu", self.suite.second, *never)
            # The features of a GPU differ from those of the CPU in the last bits.
            self.result["two_gpus_difference_from_one"] = self.difference("data-0-model-1", "deterministic-graphs")
        runs = sorted(name for name in self.result["commands"] if self.losses(name))
        self.result["runs"] = {name: self.report(name, "device", "steps", "steps_per_second", "step_ms", "input_stall_ratio", "transfer_hidden_ratio", "memory", "utilization", "verdict") for name in runs}

    def bench(self):
        workers, file = os.cpu_count() // 2 or 1, self.suite.work / "bench.json"
        self.command("bench", [
            self.suite.host, "bench", *self.suite.graph, "--batch-sizes", setting("BATCH_SIZES", "8,16,32,64,128"), "--bench-steps", self.suite.steps,
            "--bench-rounds", setting("ROUNDS", 1), "--input-modes", setting("INPUT_MODES", "compute,synchronous,double,triple"), "--json", "--num-workers", workers, "--plugin-workers", f"features={setting('PLUGIN_WORKERS', workers)}"], stdout=file)
        text = file.read_text() if file.exists() else ""
        self.result["bench"] = json.loads(text) if text else None

    def cap(self):
        """Memory stays below its limit, and each GPU is used by the declared processes only."""
        limit = setting("CAP_MB", 12000)
        isolated = ["--enable-memory-isolation", "--checkpoint-every", 0]
        where = ["--data-gpu", self.suite.first, "--model-gpu", self.suite.second, "--data-gpu-memory", setting("CAP_DATA_MB", "auto")] if self.suite.two else []
        batch = setting("CAP_BATCH", 0) or self.largest(128, *where, *isolated, "--model-gpu-memory", limit)
        isolated += ["--batch-size", batch]
        before, seen, uuids = processes_on_gpus(), {}, [card["uuid"] for card in self.suite.cards]

        def sample(process):
            while process.poll() is None:
                ours = children(process.pid)
                for uuid, pids in (processes_on_gpus() or {}).items():
                    for pid in pids - before.get(uuid, set()):
                        kind = "host" if pid == process.pid else "plugin" if pid in ours else "other"
                        if kind != "other" or uuid in uuids:  # someone else may use the GPUs that the suite does not
                            seen.setdefault(uuid, set()).add(kind)
                time.sleep(1)

        if before is None:
            sample, seen = None, None
        self.train("cap", *where, *isolated, "--model-gpu-memory", limit, steps=setting("CAP_STEPS", 1000), watch=sample)
        report = self.report("cap", "steps", "memory", "verdict")
        peaks = {m["role"]: m.get("process_peak_bytes", 0) >> 20 for m in report["memory"] or [] if m["device"] != "cpu"}
        limits = {m["role"]: m.get("limit_bytes", 0) >> 20 for m in report["memory"] or [] if m["device"] != "cpu"}
        self.result |= {"steps": report["steps"], "batch_size": batch, "limit_mb": limits, "peak_mb": peaks,
                        "peaks_below_limits": all(peaks[role] <= limits[role] for role in peaks) if peaks else None}
        if seen is None:
            self.result["processes"] = "not checked: no nvidia-smi"
        else:
            model, data = (uuids[1], uuids[0]) if self.suite.two else (uuids[0], None)
            declared = seen.get(model) == {"host"} and seen.get(data, set()) <= {"plugin"} and set(seen) <= {model, data}
            self.result |= {"processes": {uuid: sorted(kinds) for uuid, kinds in seen.items()}, "processes_as_declared": declared if seen else None}
        # One limit that is too small for anything, and one that is enough for the weights but not for a step.
        for name, mb in ("refused-by-plan", 100), ("refused-by-trial-step", peaks.get("model", 0) * 6 // 10):
            if mb:
                text = self.train(name, *where, *isolated, "--model-gpu-memory", mb, want=3)
                self.result[name.replace("-", "_")] = text[text.find("error: "):].splitlines()[:12]

    def limits(self):
        """At every limit and precision, the largest batch that the refusal names trains below the limit, by the driver's figure. Each
        GPU takes the next limit when it has done one."""
        waiting, rows = queue.SimpleQueue(), []
        for mb in sorted(map(int, setting("LIMITS_MB", "6000 9000 12000 20000 40000").split()), reverse=True):
            for precision in setting("LIMITS_PRECISIONS", "tf32 bf16").split():
                waiting.put((mb, precision))

        def work(card):
            while not waiting.empty():
                try:
                    rows.append(self.limit(card, *waiting.get_nowait()))
                except queue.Empty:
                    return

        threads = [threading.Thread(target=work, args=(card["index"],)) for card in self.suite.cards]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.result["limits"] = sorted(rows, key=lambda row: (row["precision"], row["limit_mb"]))
        self.result["peaks_below_limits"] = all(row["peak_mb"] is not None and row["peak_mb"] <= row["limit_mb"] for row in rows)

    def limit(self, card, mb, precision):
        """Trains the largest batch that fits into a limit on one GPU, with the plugins on the CPU."""
        name, row = f"limit-{precision}-{mb}", {"precision": precision, "limit_mb": mb, "batch_size": None, "peak_mb": None}
        flags = ["--precision", precision, "--data-gpu", "cpu", "--model-gpu", card, "--enable-memory-isolation", "--model-gpu-memory", mb, "--checkpoint-every", 0]
        try:
            row["batch_size"] = self.named(256, *flags, name=f"{name}-refused")
        except RuntimeError as e:
            return row | {"problem": str(e)}
        self.train(name, *flags, "--batch-size", row["batch_size"], steps=setting("LIMITS_STEPS", 1000))
        report = self.report(name, "steps", "memory", "step_ms", "input_stall_ratio")
        peaks = [m.get("process_peak_bytes", 0) >> 20 for m in report.pop("memory") or [] if m["role"] == "model" and m["device"] != "cpu"]
        return row | report | {"peak_mb": max(peaks, default=None)}

    def named(self, batch, *flags, name):
        """Returns `batch` if it starts, otherwise the batch size that the refusal names: the largest that fits, or after a minute of search
        the largest that was tried."""
        text = self.train(name, *flags, "--batch-size", batch, steps=1, want=(0, 3))
        if self.result["commands"][name]["exit_status"] == 0:
            return batch
        hint = re.search(r"--batch-size (\d+), (?:the largest that|which) fits", text)
        if not hint:
            raise RuntimeError(f"the refusal of {batch} rows names no batch size")
        return int(hint[1])

    def largest(self, batch, *flags):
        """Returns the largest batch size that starts, up to `batch`. The refusal of one row more must name the same."""
        largest = self.named(batch, *flags, name=f"batch-{batch}")
        if largest < batch:
            self.result["largest_batch_is_named"] = self.named(largest + 1, *flags, name=f"batch-{largest + 1}") == largest
        return largest

    def faults(self):
        """After a fault, a run continues with the same results."""
        flags = ["--deterministic", "--checkpoint-every", 50]
        steps = max(200, self.suite.steps)
        where = ["--data-gpu", self.suite.first, "--model-gpu", self.suite.second]
        self.train("whole", *flags, *where, steps=steps)

        def after_a_third(run, inject):
            """Injects a fault after a third of the steps."""
            def wait(process):
                file = self.suite.work / run / "metrics.jsonl"
                while process.poll() is None:
                    if file.exists() and file.read_bytes().count(b"\n") > steps // 3:
                        return inject(process)
                    time.sleep(0.005)

            return wait

        points, killed = Points(self.suite.work / "points"), []

        def kill_plugin(process):
            pid = min(children(process.pid), default=None)
            if pid:
                os.kill(pid, signal.SIGKILL)
                killed.append((pid, time.monotonic()))

        self.train("plugin-killed", *flags, *points.flags, *where, steps=steps, watch=after_a_third("plugin-killed", kill_plugin))
        if killed:
            self.result["killed_plugin_replaced_after_s"] = points.replaced_after(*killed[0])
            waits = [json.loads(line)["input_wait_ms"] for line in (self.suite.work / "plugin-killed" / "metrics.jsonl").open()]
            self.result["longest_wait_for_a_batch_ms"] = max(waits[1:], default=None)
        self.train("slow-copies", *flags, *where, *Points(self.suite.work / "slow", 0.02).flags, steps=steps)
        # A plugin process loses its CUDA context. In the run to compare with, one has lost it before.
        for name, marks in ("context-lost-before", ["lost"]), ("context-lost", []):
            folder = pathlib.Path(self.suite.environment.setdefault("XTTS_PLUGIN_FAULT_MARKS", str(self.suite.work / "marks")))
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for mark in marks:
                (folder / mark).touch()
            self.train(name, *flags, *where, "--augment", "losecontext", steps=steps)
        self.result["context_lost_equals_context_lost_before"] = self.equal("context-lost", "context-lost-before")
        self.result["restarts_after_context_lost"] = {p["id"]: p["restarts"] for p in self.report("context-lost", "plugins")["plugins"] or []}
        self.train("terminated", *flags, *where, steps=steps, want=130, watch=after_a_third("terminated", lambda p: p.send_signal(signal.SIGTERM)))
        self.train("terminated-resumed", *flags, *where, steps=steps, resume=True)
        self.train("killed", *flags, *where, steps=steps, want=-signal.SIGKILL, watch=after_a_third("killed", lambda p: p.kill()))
        self.train("killed-resumed", *flags, *where, steps=steps, resume=True)
        self.train("one-flag", "--data-gpu", self.suite.first, want=2)
        self.train("no-such-gpu", "--data-gpu", "cpu", "--model-gpu", 99, want=2)
        self.result |= {f"{run.replace('-', '_')}_equals_whole": self.equal(run, "whole") for run in ("plugin-killed", "slow-copies", "terminated", "killed")}
        plugins = self.report("plugin-killed", "plugins")["plugins"] or []
        self.result["restarts_of_the_killed_plugin"] = sum(p["restarts"] for p in plugins)
        self.result["every_fault_was_injected"] = len(killed) == 1 and self.result["restarts_of_the_killed_plugin"] == 1 and self.result["restarts_after_context_lost"].get("gpufault") == 1

    def torture(self):
        """scripts/torture, on GPUs: injects a fault into the host or a plugin in every phase of the protocol."""
        settings = {"DEVICE": "cuda", "DETERMINISTIC": "true", "DATA_GPU": self.suite.first, "MODEL_GPU": self.suite.second}
        environment = [f"XTTS_HOST_{name}={value}" for name, value in settings.items()]
        environment += [f"{name}={os.environ[name]}" for name in os.environ if name.startswith(("XTTS_HOST_ORT_LIB", "XTTS_PLUGIN_TEST_FAKE_", "LD_LIBRARY_PATH"))]
        args = [self.suite.kit / "torture", "-host", self.suite.host, "-plugins", self.suite.kit / "plugins", "-kills", setting("KILLS", 26), "-jobs", setting("JOBS", 4)]
        text = self.command("torture", args + [arg for value in environment for arg in ("-env", value)])
        self.result["torture"] = text[text.find("\n\n"):].splitlines() if "\n\n" in text else []

    def latency(self):
        """The time of a batch and of a step outside the graphs."""
        text = self.command("upload", [self.suite.kit / "cuda.test", "-test.run", "^$", "-test.bench", "Upload", "-test.benchtime", "2000x"], folder="gpu/cuda")
        for name, figures in re.findall(r"^Benchmark(\S+)\s+\d+\s+(.*)$", text, re.M):
            self.result[name] = {unit: float(value) for value, unit in re.findall(r"([\d.e+]+) (\S+)", figures)}
        self.train("steps", "--checkpoint-every", 0, "--enable-static-shapes")
        report = self.report("steps", "phases_ms", "input_stall_ratio", "transfer_hidden_ratio", "step_ms")
        phases = report["phases_ms"] or {}
        self.result |= report
        if phases:
            self.result["host_ms_per_step"] = phases["wait"] + phases["other"]

    def bf16(self):
        """Training in bf16: losses against PyTorch's autocast, the same bits again and after a resume, memory below its limit."""
        for folder in self.suite.bundles:
            name = folder.name
            shutil.rmtree(self.suite.work / "bundle-bf16", ignore_errors=True)
            bundle = self.suite.work / "bundle-bf16" / name
            shutil.copytree(folder, bundle)
            draw_weights(bundle)
            where, mixed = ["--graph", bundle], ["--precision", "bf16"]
            found = self.result[name] = {"torch": self.against_torch(name, bundle, where)}
            # Step times without the batches being written, then the bits under --deterministic.
            steps, half = setting("BF16_STEPS", 100), setting("BF16_HALF", 20)
            for precision in ("bf16", "tf32"):
                self.train(f"{name}-{precision}-timed", *where, "--precision", precision, "--checkpoint-every", 0, steps=steps)
                found[precision] = self.report(f"{name}-{precision}-timed", "step_ms", "memory")
            deterministic = [*where, *mixed, "--deterministic", "--schedule", "constant"]
            self.train(f"{name}-whole", *deterministic, steps=2 * half)
            self.train(f"{name}-halved", *deterministic, steps=half)
            first, whole = self.losses(f"{name}-halved"), self.losses(f"{name}-whole")
            self.result[f"{name}_again_has_the_same_bits"] = bool(first and whole) and first == whole[:half]
            self.train(f"{name}-halved-resumed", *deterministic, steps=2 * half, resume=True)
            self.result[f"{name}_resumed_equals_whole"] = bool(self.equal(f"{name}-halved", f"{name}-whole"))
            self.limited(name, where + mixed)

    def against_torch(self, name, bundle, where):
        """Trains in bf16, and again in PyTorch under autocast on the same batches. Returns the comparison of the losses."""
        debug, file = self.suite.work / f"{name}-debug", self.suite.work / f"{name}-torch.json"
        (debug / "batches").mkdir(parents=True)
        self.train(f"{name}-bf16", *where, "--precision", "bf16", "--debug-dir", debug, "--checkpoint-every", 0, steps=setting("BF16_STEPS", 100))
        rerun = [sys.executable, "-m", "xtts_export.baseline.rerun", self.suite.work / f"{name}-bf16", "--bundle", bundle, "--batches", debug / "batches", "--precision", "bf16"]
        self.command(f"{name}-torch", [*rerun, *setting("RERUN_FLAGS", "").split()], want=(0, 1), folder=pathlib.Path("scripts"), stdout=file)
        shutil.rmtree(debug)
        text = file.read_text() if file.exists() else ""
        outcome = json.loads(text) if text else {}
        self.result[f"{name}_losses_within_limit"] = outcome.get("within", False)
        return outcome

    def limited(self, name, where):
        """The memory plan is right: a run that it accepts stays below its limit, as the driver measures it."""
        unlimited = self.report(f"{name}-bf16", "memory")["memory"] or []
        peak = max((m.get("process_peak_bytes", 0) >> 20 for m in unlimited if m["role"] == "model" and m["device"] != "cpu"), default=0)
        if not peak:
            return
        isolated = [*where, "--enable-memory-isolation", "--checkpoint-every", 0, "--data-gpu", "cpu", "--model-gpu", self.suite.first]
        limit = peak * 5 // 4
        self.train(f"{name}-limited", *isolated, "--model-gpu-memory", limit, steps=setting("BF16_HALF", 20))
        limited = self.report(f"{name}-limited", "memory")["memory"] or []
        peaks = [m.get("process_peak_bytes", 0) >> 20 for m in limited if m["role"] == "model" and m["device"] != "cpu"]
        self.result[f"{name}_below_its_limit"] = max(peaks) <= limit if peaks else None
        text = self.train(f"{name}-refused", *isolated, "--model-gpu-memory", 930, steps=1, want=(0, 3))
        self.result[name] |= {"limit_mb": limit, "peak_mb": peaks, "refused": text[text.find("error: "):].splitlines()[:9]}

    def pytorch(self):
        """Steps beside those of PyTorch, on the same batches."""
        file, forms = self.suite.work / "pytorch.json", setting("PYTORCH_FORMS", "")
        self.command("pytorch", [
            self.suite.host, "bench", *self.suite.graph, "--against", "pytorch", "--python", sys.executable, "--batch-sizes", setting("PYTORCH_BATCH_SIZES", "16"),
            "--bench-steps", setting("PYTORCH_STEPS", 50), "--bench-rounds", setting("PYTORCH_ROUNDS", 1), "--precision", setting("PYTORCH_PRECISION", "auto"),
            *(["--forms", forms] if forms else []), "--json"], stdout=file)
        text = file.read_text() if file.exists() else ""
        self.result["against_pytorch"] = json.loads(text) if text else None

    def memory(self):
        """The memory of short runs, by the driver's figure, beside what `graph fits` plans for them without a GPU."""
        bundles = {name: ["--graph", f"builtin:myxtts-{name}"] for name in ("nano", "multispeaker")}
        if self.suite.graph:
            bundles = {"bundle": self.suite.graph, **bundles}
        rows, file = [], self.suite.work / "fits.json"
        for name, where in bundles.items():
            self.command(f"fits-{name}", [self.suite.host, "graph", "fits", where[1], "--json"], stdout=file)
            text = file.read_text() if file.exists() else ""
            for fit in json.loads(text)["precisions"] if text else []:
                for batch in setting("MEMORY_BATCHES", "8 32 128").split():
                    planned = next((p for p in fit["planned"] if p["rows"] == int(batch)), None)
                    if planned:
                        rows.append(self.measured(name, where, fit, planned))
        self.result["memory"] = rows

    def measured(self, name, where, fit, planned):
        """Trains batches of the bundle's own buckets. Before the first step, trial runs have used the largest."""
        run = f"memory-{name}-{fit['precision']}-{planned['rows']}"
        self.train(run, *where, "--buckets", "bundle", "--precision", fit["precision"], "--batch-size", planned["rows"], "--checkpoint-every", 0,
                   "--data-gpu", "cpu", "--model-gpu", self.suite.first, steps=setting("MEMORY_STEPS", 40))
        report = self.report(run, "bundle", "memory", "graphs", "steps")
        model = next((m for m in report["memory"] or [] if m["role"] == "model" and m["device"] != "cpu"), {})
        return {"model": report["bundle"], "precision": fit["precision"], "rows": planned["rows"], "steps": report["steps"],
                "planned": planned | {key: fit[key] for key in ("fixed_bytes", "library_bytes")}, "measured": model, "graphs": report["graphs"],
                "planned_to_measured": round(planned["total_bytes"] / peak, 3) if (peak := model.get("process_peak_bytes")) else None}

    run = {"tests": tests, "nccl": nccl, "losses": runs_compared, "bench": bench, "cap": cap, "limits": limits, "faults": faults, "torture": torture, "latency": latency, "bf16": bf16, "pytorch": pytorch, "memory": memory}


class Suite:
    """The kit, the machine, and a folder for the output of the commands."""

    def __init__(self, kit, work):
        self.kit, self.work, self.host = kit, work, kit / "xtts-host"
        self.steps, self.graph = setting("STEPS", 200), []
        self.bundles = [f for f in sorted((kit / "bf16").glob("*")) if f.name in setting("BF16", f.name).split()]
        self.environment = os.environ | {"XTTS_HOST_CACHE_DIR": str(work / "cache"), "XTTS_HOST_PLUGINS": str(kit / "plugins"),
                                         "XTTS_HOST_DEVICE": "cuda", "ORT_DISABLE_TELEMETRY": "1"}
        # doctor finds GPUs as training does. Its other findings are not needed: the commands report them.
        doctor = subprocess.run([self.host, "doctor", "--json"], capture_output=True, text=True, env=self.environment)
        lines = [f["text"] for s in json.loads(doctor.stdout)["sections"] for f in s["findings"]]
        cards = [re.match(r"GPU (\d+) \((.*), (GPU-[0-9a-f-]+)\) at ", line) for line in lines]
        chosen = os.environ.get("GPUS", "").split()
        self.cards = [{"index": int(c[1]), "name": c[2], "uuid": c[3]} for c in cards if c and (not chosen or c[1] in chosen)]
        if not self.cards:
            sys.exit("error: no GPU found\n" + doctor.stdout)
        self.two = len(self.cards) >= 2
        self.first, self.second = self.cards[0]["index"], self.cards[int(self.two)]["index"]
        self.environment["CUDA_VISIBLE_DEVICES"] = ",".join(c["uuid"] for c in self.cards)
        self.environment["XTTS_HOST_TEST_GPU"] = self.cards[0]["uuid"]
        if self.two:
            self.environment["XTTS_HOST_TEST_GPUS"] = "2"
        found = next((n[1] for n in (re.match(r"NCCL \S+: (.*)", line) for line in lines) if n), None)
        if found:
            self.environment["XTTS_HOST_TEST_NCCL"] = found
        driver = [re.search(r"NVIDIA driver (\S+?),", line) for line in lines]
        self.machine = {"gpus": [c["name"] for c in self.cards], "driver": next((d[1] for d in driver if d), None), "cores": os.cpu_count(),
                        "commit": (kit / "commit").read_text().strip()}
        if (kit / "bundle" / "codes.onnx").exists():
            self.environment["XTTS_HOST_TEST_XTTS_BUNDLE"] = str((kit / "bundle").resolve())
        if (kit / "bundle").is_dir():
            shutil.copytree(kit / "bundle", work / "bundle")
            draw_weights(work / "bundle")
            self.graph = ["--graph", work / "bundle"]


def run(kit, out):
    """Runs the sections of SECTIONS. After each of them the file is complete."""
    chosen = []
    for word in os.environ.get("SECTIONS", " ".join(MINUTES)).split():
        name, _, minutes = word.partition("=")
        if name not in MINUTES:
            sys.exit(f"error: SECTIONS: {name} is unknown; the sections are {' '.join(MINUTES)}")
        chosen.append((name, float(minutes or MINUTES[name])))
    with tempfile.TemporaryDirectory(prefix="gpu-suite-") as work:
        suite = Suite(pathlib.Path(kit).resolve(), pathlib.Path(work))
        sections = []
        for name, minutes in chosen:
            section = Section(name, minutes, suite)
            try:
                Section.run[name](section)
            except Exception as e:  # the other sections still run
                section.result["problem"] = f"{type(e).__name__}: {e}"
            section.result["seconds"] = round(time.monotonic() - section.began, 1)
            sections.append(section.result)
            write(out, sections)
    return report(sections)


def merge(out, parts):
    """Joins files of the same commit. A section that ran on one GPU and on two is in the result twice."""
    sections = [section for part in parts for section in json.loads(pathlib.Path(part).read_text())["sections"]]
    commits = {section["commit"] for section in sections}
    if len(commits) != 1:
        sys.exit(f"error: the files are from different commits: {', '.join(sorted(commits))}")
    write(out, sections)
    return report(sections)


def write(out, sections):
    file = pathlib.Path(out)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"version": 1, "sections": sections}, indent=1) + "\n")


def report(sections):
    """Prints the problems and returns the exit status."""
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
        if "skipped" in s:
            print(f"{where}: skipped: {s['skipped']}", file=sys.stderr)
        elif not problems:
            print(f"{where}: passed in {s['seconds']:.0f} s", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(run(*sys.argv[2:]) if sys.argv[1] == "run" else merge(sys.argv[2], sys.argv[3:]))
