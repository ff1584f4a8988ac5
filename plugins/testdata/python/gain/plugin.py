"""A plugin for xtts-host in Python: the stage `gain` multiplies a row of the waveform by a gain, with a probability.

It was written from docs/plugin-protocol.md alone and shows everything that a plugin in another language needs.
stage_pb2.py and stage_pb2_grpc.py are generated from shared/stagepb/stage.proto with grpcio-tools 1.85.1:

    python -m grpc_tools.protoc -I shared/stagepb --python_out=DIR --grpc_python_out=DIR stage.proto

The first python3 in the host's PATH runs it. It needs numpy, grpcio 1.85.1 and protobuf 7.35.1 or later.
"""
import json
import mmap
import os
import queue
import signal
import sys
import threading
import time
import traceback
from concurrent import futures

if os.environ.get("XTTS_HOST_PLUGIN") != "9c1f6c0e5d7a4b61":
    sys.exit("this is a plugin of xtts-host: name the folder above its own with --plugins")

stdout = os.dup(1)  # for the handshake; output of libraries goes to the log
os.dup2(2, 1)


def lifeline():
    os.read(4, 1)  # returns when the host closes its end or dies
    os._exit(0)


signal.signal(signal.SIGINT, signal.SIG_IGN)
threading.Thread(target=lifeline, daemon=True).start()

import grpc  # slow to load, so after the start of the lifeline thread
import numpy as np

import stage_pb2 as pb
from stage_pb2_grpc import StageServicer, add_StageServicer_to_server


class Gain:
    """One instance of the stage: its configuration, and the layout of its tensors in each bucket."""

    def __init__(self, instance, layouts):
        config = json.loads(instance.config_json or "{}")  # the host has checked it, but does not fill in defaults
        self.probability = config.get("probability", 0)
        self.factor = np.float32(10 ** (config.get("db", -6) / 20))
        names = instance.inputs["waveform"], instance.inputs["waveform_lengths"]
        self.layouts = [[{t.name: t for t in layout.tensors}[name] for name in names] for layout in layouts]

    def apply(self, call, slot):
        wave, lengths = self.layouts[call.bucket]
        rows, samples = wave.shape
        waveform = np.frombuffer(slot, "<f4", rows * samples, wave.offset).reshape(rows, samples)
        for row, length in enumerate(np.frombuffer(slot, "<i4", rows, lengths.offset)):
            key = int.from_bytes(call.row_keys[16 * row:16 * row + 16], "little")
            if length and np.random.Generator(np.random.Philox(key=key)).random() < self.probability:
                waveform[row, :length] *= self.factor  # do not change the padding


def failure(e):
    """One line about an exception, with its place. The host logs the stack, which goes to the standard error."""
    traceback.print_exception(e)
    where = traceback.extract_tb(e.__traceback__)[-1]
    return f"{type(e).__name__}: {e} ({os.path.basename(where.filename)}:{where.lineno})"


class Plugin(StageServicer):
    def __init__(self):
        self.instances = self.ring = None
        self.changed, self.draining = threading.Condition(), False
        self.calls = self.failed = self.in_flight = 0

    def Info(self, request, context):
        with open("plugin.json") as file:  # the working directory is the plugin's folder
            manifest = json.load(file)
        return pb.InfoResponse(id=manifest["id"], version=manifest["version"])

    def Configure(self, request, context):
        if self.instances is not None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Configure was called twice")
        try:
            self.instances = [Gain(instance, request.layouts) for instance in request.instances]
        except Exception as e:
            context.abort(grpc.StatusCode.INTERNAL, failure(e))
        return pb.ConfigureResponse()

    def Attach(self, request, context):
        if self.instances is None or self.ring is not None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Attach is called once, after Configure")
        self.ring, self.slot_size = mmap.mmap(3, request.slots * request.slot_size), request.slot_size
        return pb.AttachResponse()

    def Process(self, calls, context):
        if self.ring is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Process was called before Attach")
        accepted = queue.SimpleQueue()

        def accept():  # a separate thread, to read calls while a batch is processed
            try:
                for call in calls:
                    with self.changed:
                        self.in_flight += 1
                        accepted.put((call, self.draining))
            finally:  # the host has closed its side, or has ended
                accepted.put(None)

        threading.Thread(target=accept, daemon=True).start()
        while item := accepted.get():
            yield self.work(*item)  # continues when the result has been sent
            with self.changed:
                self.in_flight -= 1
                self.changed.notify_all()

    def work(self, call, draining):
        began, result = time.perf_counter_ns(), pb.Result(id=call.id)
        try:
            if draining:
                raise RuntimeError("a call came after Drain")
            slot = memoryview(self.ring)[call.slot * self.slot_size:][:self.slot_size]
            self.instances[call.instance].apply(call, slot)
        except BaseException as e:  # also SystemExit: a call without an answer is late
            clips = ", ".join(filter(None, call.clip_ids))  # of a host that does not send them: none
            result.error = f"{failure(e)}; clips {clips or 'unknown'}"
            self.failed += 1
        self.calls += 1
        result.nanoseconds = time.perf_counter_ns() - began
        return result

    def Drain(self, request, context):
        with self.changed:
            self.draining = True
            self.changed.wait_for(lambda: self.in_flight == 0)
        return pb.DrainResponse()

    def Health(self, request, context):
        return pb.HealthResponse(serving=True)

    def Stats(self, request, context):
        return pb.StatsResponse(calls=self.calls, failed=self.failed, in_flight=self.in_flight)


# Four threads: one for Process, one for Drain, the others for Health and Stats.
server = grpc.server(futures.ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", 64 << 20)])
add_StageServicer_to_server(Plugin(), server)
# The host uses only Check of the standard health service. HealthCheckResponse{status: SERVING} is these two bytes.
check = grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x08\x01")
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check})])
socket = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], f"{os.getpid()}.sock")
server.add_insecure_port("unix:" + socket)
server.start()
os.write(stdout, f"1|1|unix|{socket}|grpc\n".encode())
server.wait_for_termination()
