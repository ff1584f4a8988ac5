"""serve, which runs a plugin until the host ends it: the handshake of go-plugin, and a gRPC server."""
import json
import logging
import math
import os
import sys
import time
from concurrent import futures

from . import manifest, process

MAX_MESSAGE = 64 << 20
PROTOCOLS = 1, 2  # the versions that this package has
_STANDARD = set(vars(logging.LogRecord("", 0, "", 0, "", (), None)))
_LEVELS = {"WARNING": "warn", "CRITICAL": "error"}


def serve(stages=None, /, **named):
    """Serves the stages and does not return: serve(gain=Gain), or serve({"soft-clip": SoftClip}).

    Call it under if __name__ == "__main__", so that tests, and processes of multiprocessing, can import the plugin.
    The names are those in plugin.json. In a keyword, _ stands for - where plugin.json has no such name with _.
    """
    if process.handshake is None:
        print("error: this is a plugin: xtts-host starts it", file=sys.stderr)
        print("hint: put its folder into a folder of plugins, and name that one with --plugins", file=sys.stderr)
        sys.exit(1)
    log = _logger()
    declared = manifest.read("plugin.json")  # the host starts the process in the plugin's folder
    from . import service  # loads grpc, which takes a moment
    stages = _named(declared, dict(stages or {}, **named))
    plugin = service.Service(declared, stages, process.RING, log)
    server = start(plugin, socket := os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], f"{os.getpid()}.sock"))
    process.say(f"1|{version()}|unix|{socket}|grpc\n")
    server.wait_for_termination()


def version():
    """The version of the protocol: the highest that the host has, too."""
    offered = {v.strip() for v in os.environ.get("PLUGIN_PROTOCOL_VERSIONS", "").split(",")}
    return max((v for v in PROTOCOLS if str(v) in offered), default=PROTOCOLS[0])


def start(plugin, socket):
    """Starts the gRPC server of a plugin."""
    import grpc
    # Four threads: one for Process, one for Drain, the others for Health and Stats.
    server = grpc.server(futures.ThreadPoolExecutor(4), options=[
        ("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)])
    server.add_generic_rpc_handlers((plugin.handlers(), _health(grpc)))
    server.add_insecure_port("unix:" + socket)
    server.start()
    return server


def _health(grpc):
    """The host uses only Check of the standard service. HealthCheckResponse{status: SERVING} is these two bytes."""
    check = grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x08\x01")
    return grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check})


def _named(declared, stages):
    """The stages by their names in plugin.json."""
    out = {}
    for name, make in stages.items():
        hyphens = name.replace("_", "-")
        found = name if name in declared.stages else hyphens
        if found not in declared.stages:
            raise ValueError(f"plugin.json has no stage {name!r}; it has {', '.join(declared.stages)}")
        out[found] = make
    for name in declared.stages:
        if name not in out:
            raise ValueError(f"plugin.json has a stage {name!r}, which serve did not get")
    return out


def _logger():
    """The logger of the SDK. Its lines, and warnings of libraries, have the format that the host reads."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter())
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    log = logging.getLogger("xtts_plugin")
    log.setLevel(logging.DEBUG)
    return log


class _Formatter(logging.Formatter):
    """One JSON object for each entry. What extra has becomes fields."""

    def format(self, record):
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {"@level": _LEVELS.get(record.levelname, record.levelname.lower()), "@message": record.getMessage(),
                 "@timestamp": f"{now}.{int(record.msecs):03d}000Z"}
        entry.update((k, v) for k, v in vars(record).items() if k not in _STANDARD and k not in ("message", "asctime"))
        if record.exc_info:
            entry["stack"] = self.formatException(record.exc_info)
        return json.dumps(_finite(entry), default=str)


def _finite(value):
    """value with strings in place of NaN and infinities, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {_finite(k): _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, (list, tuple)) else value
