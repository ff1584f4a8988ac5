"""One trial: the program reads one variant of a file and accepts or refuses it."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

# Limits of a refusal. CPU time rather than elapsed time, because the machine has other work. TIMEOUT is for every trial.
CPU_SECONDS, MEMORY, TIMEOUT = 1.0, 256 << 20, 10.0

CRASH = re.compile(r"^(panic:|fatal error:|goroutine \d+ \[|SIG[A-Z]+:|terminate called)", re.M)
LEAK = re.compile(r"root:[^ ]*:0:0:")  # /etc/passwd


@dataclasses.dataclass
class Trial:
    kind: str
    name: str
    argv: list
    subject: str  # regular expression that the error of a refusal must match
    statuses: tuple = (0, 2)
    says: str = ""  # regular expression that the output must match if the file is accepted


@dataclasses.dataclass
class Outcome:
    status: int
    cpu: float
    memory: int
    out: str
    err: str
    faults: list


class Launcher:
    """A small process that starts the program, because a child inherits the peak memory of its parent."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-S", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, trial: Trial, env: dict, folder: pathlib.Path) -> Outcome:
        """Runs the program and checks the result. CPU time and memory include the plugins that the program waited for."""
        print(json.dumps([trial.argv, env, str(folder)]), file=self.process.stdin, flush=True)
        status, cpu, memory, timed_out = json.loads(self.process.stdout.readline())
        text = [(folder / name).read_bytes()[:1 << 20].decode(errors="replace") for name in ("out", "err")]
        o = Outcome(status, cpu, memory, *text, faults=[])
        if timed_out:
            o.faults.append(f"hangs: killed after {TIMEOUT:.0f} s")
        else:
            check(trial, o)
        return o

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def launch(argv: list, env: dict, folder: str) -> tuple:
    """Runs a program and returns its status (negative for a signal), CPU time, peak memory, and whether it timed out."""
    with open(folder + "/out", "wb") as out, open(folder + "/err", "wb") as err:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=folder, start_new_session=True)
    late = threading.Event()

    def kill():
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(TIMEOUT, kill)
    timer.start()
    _, wait, usage = os.wait4(process.pid, 0)
    timer.cancel()
    return os.waitstatus_to_exitcode(wait), usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, late.is_set()


def check(trial: Trial, o: Outcome):
    fault = o.faults.append
    if o.status < 0:
        return fault(f"ended by {signal.Signals(-o.status).name}")
    if crash := CRASH.search(o.err + o.out):
        return fault(f"crashed: {crash.group()}")
    if o.status not in trial.statuses:
        fault(f"exit status {o.status}, not {' or '.join(map(str, trial.statuses))}")
    if LEAK.search(o.out + o.err):
        fault("prints a file outside the folder")
    if o.status == 0:
        if trial.says and not re.search(trial.says, o.out + o.err, re.M):
            fault(f"the output does not match {trial.says}")
    else:
        at = o.err.find("error: ")
        if at < 0 or at > 0 and o.err[at - 1] != "\n":
            fault("no line begins with error:")
        elif not re.search(trial.subject, o.err[at:]):
            fault(f"the error does not match {trial.subject}")
        if (n := len(re.findall(r"^hint: \S", o.err, re.M))) != 1:
            fault(f"{n} hints")
        if len(o.err) > 16 << 10:
            fault(f"{len(o.err)} bytes of messages")
    if o.status == 2 or not o.out.count("training starting now"):
        if o.cpu > CPU_SECONDS:
            fault(f"{o.cpu:.2f} s of CPU time")
        if o.memory > MEMORY:
            fault(f"{o.memory >> 20} MiB of memory")


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(launch(*json.loads(line))), flush=True)
