"""What the process of a plugin does first: it watches the host, and keeps its standard output for the handshake."""
import ctypes
import faulthandler
import os
import signal
import stat
import sys
import threading

COOKIE = ("XTTS_HOST_PLUGIN", "9c1f6c0e5d7a4b61")
RING, LIFELINE = 3, 4  # descriptors that the host gives

handshake = None  # the descriptor that the handshake line is written to; None in a process that the host did not start
_watched = True  # False in a child process: no thread watches the lifeline there, which is closed


def begin():
    """Begins the process of a plugin, if the host started this process as one. Otherwise it does nothing."""
    global handshake
    if handshake is not None or os.environ.get(COOKIE[0]) != COOKIE[1]:
        return
    if not _is_pipe(LIFELINE):
        sys.exit(f"descriptor {LIFELINE} is not the lifeline: the host must give the read end of a pipe")
    del os.environ[COOKIE[0]]  # a child process is no plugin
    _keep_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host, which lets its plugins finish
    for fd in (RING, LIFELINE):
        os.set_inheritable(fd, False)
    os.register_at_fork(after_in_child=_in_child)
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()
    handshake = os.dup(1)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    faulthandler.enable()  # a fault in a library shows its stack


def _keep_memory():
    """Has the C library keep freed memory for the next batch, in one arena. XTTS_PLUGIN_MALLOC=default leaves it alone.

    A stage makes the temporary arrays of each batch anew. Without this, the library gives their memory back to the
    kernel, which clears the pages again for the next batch. One arena, as process runs in a thread: arenas of threads
    are made of heaps of 64 MiB, each of which is given back when it is empty, and what is freed in one cannot be used
    in another. It costs memory: up to 128 MiB at the end of the heap stay, and arrays below 32 MiB leave holes in it.
    docs/results/plugins-cpu.md has figures.
    """
    if os.environ.get("XTTS_PLUGIN_MALLOC") == "default":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return  # a C library other than glibc
    arena_max, mmap_threshold, trim_threshold, mib = -8, -3, -1, 1 << 20
    for option, value in ((arena_max, 1), (mmap_threshold, 32 * mib), (trim_threshold, 128 * mib)):
        mallopt(option, value)


def say(line):
    """Writes the handshake line."""
    os.write(handshake, line.encode())


def _in_child():
    """Closes the lifeline, also in a child of a child, where the descriptor may be another file."""
    global _watched
    if _watched:
        _watched = False
        os.close(LIFELINE)


def _watch():
    """Ends the process when the host closes the lifeline, or has ended."""
    try:
        while os.read(LIFELINE, 1):
            pass
    finally:  # also if it cannot be read: without this thread, the process could outlive the host
        os._exit(0)


def _is_pipe(fd):
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode)
    except OSError:
        return False
