"""plugin.json, as far as a stage needs it: the names of the plugin, and the ports and defaults of its stages."""
import json
from dataclasses import dataclass

from . import schema

DTYPES = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "bf16": "<u2", "i32": "<i4", "i64": "<i8", "u8": "u1", "bool": "?"}


@dataclass(frozen=True)
class Port:
    name: str
    dtype: str
    shape: tuple  # of integers and symbols
    lengths: str  # the port with the lengths of the rows, or ""
    read: bool
    written: bool


@dataclass(frozen=True)
class StageSpec:
    name: str
    ports: dict  # by name
    schema: dict  # of the configuration
    deterministic: bool
    data: dict  # what plugin.json says of data folders, by name

    @property
    def lengths_read(self):
        """The input ports that hold lengths."""
        named = {p.lengths for p in self.ports.values() if p.read}
        return [p.name for p in self.ports.values() if p.name in named and p.read]

    def values(self, config_json):
        """The configuration of an instance, with the defaults of the schema."""
        return schema.filled(self.schema, self.schema, json.loads(config_json or "{}"))


@dataclass(frozen=True)
class Manifest:
    id: str
    version: str
    stages: dict  # StageSpec by name


def read(path):
    """Reads a plugin.json. The host has checked it."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    return Manifest(data["id"], data["version"], {s["name"]: _stage(s) for s in data["stages"]})


def _stage(data):
    ports = {}
    for key in ("inputs", "outputs"):
        for p in data.get(key, []):
            before = ports.get(p["name"])
            ports[p["name"]] = Port(
                p["name"], p["dtype"], tuple(p["shape"]), p.get("lengths", "") or before and before.lengths or "",
                key == "inputs" or before is not None, key == "outputs")
    return StageSpec(data["name"], ports, data.get("config", {}), data.get("deterministic", False),
                     data.get("data", {}))
