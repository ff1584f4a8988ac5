"""The process of a plugin, started as the host starts it."""
import json
import logging
import math
import os
import pathlib
import platform
import subprocess
import sys

import numpy as np
import pytest

import xtts_plugin
from xtts_plugin import serving

PACKAGE = str(pathlib.Path(xtts_plugin.__file__).parents[1])

PLUGIN = """
print("before the import")
import os
from xtts_plugin import Stage, serve
os.system("echo another library prints")
print("after the import")
assert "XTTS_HOST_PLUGIN" not in os.environ, "a child process would be a plugin, too"
if os.fork() == 0:
    os.dup2(os.open("/dev/null", os.O_RDONLY), 4)  # in place of the lifeline, which is closed here
    if os.fork() == 0:
        print("the descriptor of the grandchild:", os.readlink("/proc/self/fd/4"))
    else:
        os.wait()
    os._exit(0)
os.wait()
class Gain(Stage):
    pass
serve({names})
"""


@pytest.fixture
def start(tmp_path, gain_json):
    """Starts a plugin with a ring and a lifeline, and returns the process and the host's end of the lifeline."""
    started = []

    def run(code, environment=True, **more):
        (tmp_path / "plugin.py").write_text(code)
        ring, (end, lifeline) = os.memfd_create("ring"), os.pipe()
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": PACKAGE, **more}
        if environment:
            variables.update(XTTS_HOST_PLUGIN="9c1f6c0e5d7a4b61", PLUGIN_UNIX_SOCKET_DIR=str(tmp_path))
        shell = ["bash", "-c", f"exec {sys.executable} -B plugin.py 3<&{ring} 4<&{end}"]
        p = subprocess.Popen(shell, cwd=tmp_path, env=variables, pass_fds=(ring, end), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        started.append(p)
        os.close(ring), os.close(end)
        return p, lifeline

    yield run
    for p in started:
        p.kill()
        p.communicate()


def test_handshake_and_end(start):
    p, lifeline = start(PLUGIN.format(names="gain=Gain"))
    assert p.stdout.readline().startswith("1|1|unix|/")
    assert p.poll() is None
    os.close(lifeline)
    out, err = p.communicate(timeout=20)
    assert (p.returncode, out) == (0, "")
    assert {"before the import", "after the import", "another library prints",
            "the descriptor of the grandchild: /dev/null"} <= set(err.splitlines())


@pytest.mark.parametrize("offered, want", [
    ("1", 1), ("1,2", 2), ("2,1", 2), ("3,1", 1), ("1, 2,3", 2), ("2", 2), ("3", 1), ("", 1), (None, 1), ("1,x,,2", 2),
])
def test_version_of_the_protocol(start, monkeypatch, offered, want):
    """The highest that the host has, too; without the variable, and if there is none, the lowest."""
    monkeypatch.delenv("PLUGIN_PROTOCOL_VERSIONS", raising=False)
    if offered is not None:
        monkeypatch.setenv("PLUGIN_PROTOCOL_VERSIONS", offered)
    assert serving.version() == want
    if offered in ("1", "2,1"):
        p, _ = start(PLUGIN.format(names="gain=Gain"), PLUGIN_PROTOCOL_VERSIONS=offered)
        assert p.stdout.readline().startswith(f"1|{want}|unix|/")


def test_lifeline_that_cannot_be_read(start):
    """Without the thread that watches the host, the process would outlive it."""
    p, lifeline = start("""
import os, time
def read(fd, n):
    raise OSError("planted")
os.read = read
import xtts_plugin
time.sleep(60)
""")
    p.communicate(timeout=20)
    os.close(lifeline)
    assert p.returncode == 0


MEMORY = """
import os, resource, sys, threading
import xtts_plugin
def work():
    for _ in range(5):
        arrays = [b"x" * (4 << 20) for _ in range(24)]  # more than a heap of a thread's arena
        del arrays
for run in (work, lambda: [t := threading.Thread(target=work), t.start(), t.join()]):
    run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
@pytest.mark.parametrize("malloc", ["", "default"])
def test_memory_is_kept(start, malloc):
    """Memory that was freed is used again, in the main thread and in others, unless the variable says otherwise."""
    p, lifeline = start(MEMORY, XTTS_PLUGIN_MALLOC=malloc)
    out, err = p.communicate(timeout=20)
    os.close(lifeline)
    faults = [int(line) for line in err.split()]
    assert len(faults) == 2
    assert all(n > 10_000 for n in faults) if malloc else all(n < 5_000 for n in faults), faults


def test_log_is_json():
    """Also numbers that JSON does not have."""
    entry = logging.LogRecord("x", logging.WARNING, "", 0, "loud: %s", (math.nan,), None)
    entry.rms, entry.levels, entry.more, entry.count = math.inf, [1.5, -math.inf], {"a": (math.nan,)}, 3
    entry.size = np.float64("nan")

    def refuse(constant):
        raise AssertionError(constant)

    got = json.loads(serving._Formatter().format(entry), parse_constant=refuse)
    assert (got["@level"], got["@message"], got["rms"], got["levels"], got["more"], got["count"], got["size"]) == (
        "warn", "loud: nan", "inf", [1.5, "-inf"], {"a": ["nan"]}, 3, "nan")


@pytest.mark.parametrize("names, want", [
    ("loud=Gain", "plugin.json has no stage 'loud'; it has gain"),
    ("", "plugin.json has a stage 'gain', which serve did not get"),
])
def test_names(start, names, want):
    p, lifeline = start(PLUGIN.format(names=names))
    out, err = p.communicate(timeout=20)
    os.close(lifeline)
    assert p.returncode == 1 and want in err and not out


def test_started_by_hand(start):
    p, lifeline = start("from xtts_plugin import serve\nserve()", environment=False)
    out, err = p.communicate(timeout=20)
    os.close(lifeline)
    assert p.returncode == 1 and "error: this is a plugin: xtts-host starts it\nhint: " in err
