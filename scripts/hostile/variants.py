"""The variants, as pairs of a name and the content of the file, or a function that corrupts a fresh copy.

The same seed gives the same variants.
"""

import json
import os
import pathlib
import random
import shutil
import struct

import good as g

PASSWD = "/etc/passwd"


def of_bytes(data: bytes, rng: random.Random, most: int):
    """Yields corrupted contents of any file. A small file is truncated at every 7th byte, a large one at `most` places."""
    cuts = range(0, len(data), 7)
    for at in cuts if len(cuts) <= most else sorted(rng.sample(cuts, most)):
        yield f"cut at byte {at}", data[:at]
    for at in sorted(rng.sample(range(8 * len(data)), min(most, 8 * len(data)))):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        yield f"bit {at % 8} of byte {at // 8} flipped", bytes(flipped)
    yield "zeros", bytes(len(data))
    yield "ones", b"\xff" * len(data)
    yield "noise", rng.randbytes(len(data))
    yield "twice", data + data
    yield "a NUL before it", b"\0" + data
    yield "32 MiB of blanks", b" " * (32 << 20)


def in_place(path: pathlib.Path):
    """Yields what may be in the place of a regular file."""
    def link(target):
        def replace():
            path.unlink()
            path.symlink_to(target)
        return replace

    def fifo():
        path.unlink()
        os.mkfifo(path)

    def folder():
        path.unlink()
        path.mkdir()

    def sparse():
        with open(path, "wb") as f:
            f.truncate(64 << 30)

    def loop():
        path.unlink()
        path.symlink_to(path.name)

    yield "a link to /dev/zero", link("/dev/zero")
    yield "a link to /etc/passwd", link(PASSWD)
    yield "a link to a missing file", link("nowhere/nothing")
    yield "a link to itself", loop
    yield "a pipe", fifo
    yield "a folder", folder
    yield "a sparse file of 64 GiB", sparse


def of_json(value):
    """Yields JSON that is well formed and invalid, some of it made from a valid value."""
    yield "nested 100000 deep", b"[" * 100_000 + b"]" * 100_000
    yield "objects nested 100000 deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    yield "an array", b"[]"
    yield "null", b"null"
    yield "an unknown key", json.dumps(value | {"extra": 1}).encode()
    yield "a huge number", b'{"version": 1' + b"0" * 200_000 + b"}"
    yield "a key of 1 MiB", json.dumps({"k" * (1 << 20): 1}).encode()
    yield "100000 keys", json.dumps({f"k{i}": i for i in range(100_000)}).encode()
    yield "invalid UTF-8", json.dumps(value).encode().replace(b'"', b'"\xff\xfe', 1)


# --- bundle ---------------------------------------------------------------------------------------------------


def sign(bundle: pathlib.Path):
    """Updates the checksums of bundle.json, so that the file itself is read."""
    manifest = json.loads((bundle / "bundle.json").read_text())
    for name in manifest["files"]:
        if (bundle / name).is_file() and (bundle / name).stat().st_size < 1 << 30:
            manifest["files"][name] = g.sha256(bundle / name)
    (bundle / "bundle.json").write_text(json.dumps(manifest))


def manifests(bundle: pathlib.Path):
    """Yields bundle.json files that are well formed and have invalid values."""
    value = json.loads((bundle / "bundle.json").read_text())

    def edit(*where, to):
        copy = json.loads(json.dumps(value))
        at = copy
        for key in where[:-1]:
            at = at[key]
        at[where[-1]] = to
        return json.dumps(copy).encode()

    for path in ("../../../../etc/passwd", PASSWD, "a\0b", "x" * 300, "..", ".", "", "a/../../b", "con\n", "~"):
        yield f"graph file {path[:20]!r}", edit("graphs", 0, "file", to=path)
        yield f"tokenizer file {path[:20]!r}", edit("tokenizer", "file", to=path)
        yield f"listed file {path[:20]!r}", edit("files", to=value["files"] | {path: "0" * 64})
    yield "shape of 2^62", edit("parameters", 0, "shape", to=[1 << 62])
    yield "shape whose product overflows", edit("parameters", 0, "shape", to=[1 << 30, 1 << 30, 1 << 30])
    yield "parameters of 2^60 bytes", edit("parameters", 0, "shape", to=[1 << 30, 1 << 28])
    yield "bucket of 2^62", edit("buckets", 0, "T_mel", to=1 << 62)
    yield "hop of 0", edit("features", "hop_length", to=0)
    yield "n_fft of 2^40", edit("features", "n_fft", to=1 << 40)
    yield "rate of NaN", edit("optimizer", "lr", to=float("nan"))
    yield "10000 inputs", edit("inputs", to=[{"name": f"i{i}", "dtype": "f32", "shape": ["B"], "origin": "dataset"} for i in range(10_000)])
    yield "20000 parameters", edit("parameters", to=[{"name": f"p{i}", "shape": [1]} for i in range(20_000)])
    yield "a million files", edit("files", to={f"f{i}": "0" * 64 for i in range(1_000_000)})
    yield "1000 buckets", edit("buckets", to=[value["buckets"][0]] * 1000)


def varint(n: int) -> bytes:
    out = b""
    while n > 0x7F:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def field(number: int, content) -> bytes:
    """Encodes a field of a protobuf message: bytes and strings with their length, numbers as varints."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def models(data: bytes):
    """Yields ONNX files. Field numbers: onnx.proto, ModelProto.graph 7, functions 25; GraphProto.node 1, initializer 5;
    TensorProto.dims 1, data_type 2, name 8, raw_data 9, external_data 13, data_location 14; NodeProto.op_type 4,
    attribute 5; AttributeProto.name 1, g 6, t 5, type 20."""
    def with_tensor(tensor: bytes) -> bytes:
        return data + field(7, field(5, tensor))  # a second graph field is merged into the first

    def external(location: str, *more) -> bytes:
        entry = lambda k, v: field(13, field(1, k) + field(2, v))
        return with_tensor(field(1, 4) + field(2, 1) + field(8, "outside") + entry("location", location) + b"".join(entry(*m) for m in more) + field(14, 1))

    for path in ("../../../../etc/passwd", PASSWD, "params.safetensors/../../../etc/passwd", "./params.safetensors", "a\0b", "x" * 300, "",
                 "*/_ORT_MEM_ADDR_/*", "file:///etc/passwd"):
        yield f"data in {path[:24]!r}", external(path)
    yield "data in a listed file, then elsewhere", external("params.safetensors", ("location", PASSWD))
    yield "data in a listed file at a huge offset", external("params.safetensors", ("offset", str(1 << 62)), ("length", str(1 << 62)))
    yield "data at a negative offset", external("params.safetensors", ("offset", "-4096"))
    yield "dims 2^62", with_tensor(field(1, 1 << 62) + field(2, 1) + field(8, "big") + field(9, b"1234"))
    yield "dims 2^62 twice", with_tensor(field(1, 1 << 62) * 2 + field(2, 1) + field(8, "big") + field(9, b"1234"))
    yield "a negative dim", with_tensor(field(1, (1 << 64) - 1) + field(2, 1) + field(8, "minus") + field(9, b"1234"))
    yield "a length of 2^62", data + varint(7 << 3 | 2) + varint(1 << 62)
    nested = b""  # a graph with one node with an attribute that is a graph ...
    for _ in range(3_000):
        nested = field(1, field(4, "If") + field(5, field(1, "b") + field(20, 5) + field(6, nested)))
    yield "graphs nested 3000 deep", data + field(7, nested)
    yield "a million empty nodes", data + field(7, field(1, b"") * 1_000_000)
    yield "a million empty functions", data + field(25, b"") * 1_000_000
    yield "four million empty nodes", data + field(7, field(1, b"") * 4_000_000)
    yield "8 million dims", data + field(7, field(5, field(1, 1) * 8_000_000))


def weights(data: bytes):
    """Yields safetensors files: 8 bytes of length, a JSON header, the data."""
    size = struct.unpack("<Q", data[:8])[0]
    header, rest = json.loads(data[8:8 + size]), data[8 + size:]
    name = next(k for k in header if k != "__metadata__")

    def build(value, length=None, tail=rest):
        text = value if isinstance(value, bytes) else json.dumps(value).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + tail

    for length in (1 << 63, (1 << 64) - 1, 100_000_001, 1 << 32, len(data)):
        yield f"header of {length}", build(header, length)
    yield "offsets 2^63", build(header | {name: header[name] | {"data_offsets": [0, 1 << 63]}})
    yield "offsets backwards", build(header | {name: header[name] | {"data_offsets": [8, 0]}})
    yield "negative offsets", build(header | {name: header[name] | {"data_offsets": [-8, 0]}})
    yield "shape of 2^62", build(header | {name: header[name] | {"shape": [1 << 62, 1 << 62]}})
    yield "shape of 100000 dims", build(header | {name: header[name] | {"shape": [1] * 100_000}})
    yield "all tensors at once", build({k: v if k == "__metadata__" else v | {"data_offsets": [0, 4]} for k, v in header.items()})
    yield "names of paths", build({("../../" + k): v for k, v in header.items()})
    yield "a name with a NUL", build({k + "\0": v for k, v in header.items()})
    yield "200000 empty tensors", build({f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(200_000)}, tail=b"")
    yield "header nested deep", build(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
    yield "a tensor twice", build(json.dumps(header).encode()[:-1] + b"," + json.dumps({name: header[name]}).encode()[1:])
    yield "metadata of numbers", build(header | {"__metadata__": {"a": 1}})
    yield "30 MB of header", build(b'{"' + b"a" * 30_000_000 + b'":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}', tail=b"1234")


# --- plugins --------------------------------------------------------------------------------------------------


def plugin_manifests(plugin: pathlib.Path):
    value = json.loads((plugin / "plugin.json").read_text())
    for path in ("../../../bin/sh", "/bin/sh", "a\0b", "x" * 300, "..", "", "features_linux_amd64/../../x"):
        yield f"executable {path[:20]!r}", json.dumps(value | {"executable": {"linux_amd64": path}}).encode()
        argv = {k: v for k, v in value.items() if k != "executable"} | {"argv": [path, "../../x"]}
        yield f"argv {path[:20]!r}", json.dumps(argv).encode()
    for ref in ("file:///etc/passwd", "file:///dev/zero", "../../../../etc/passwd", "http://127.0.0.1:1/x", "#/nowhere", "#"):
        stages = [value["stages"][0] | {"config": {"$ref": ref}}]
        yield f"config $ref {ref}", json.dumps(value | {"stages": stages}).encode()
    yield "100000 stages", json.dumps(value | {"stages": [value["stages"][0]] * 1_000}).encode()


def plugin_sums(plugin: pathlib.Path):
    line = (plugin / "plugin.sum").read_bytes().splitlines(keepends=True)[0]
    for path in (b"../../../etc/passwd", b"/etc/passwd", b"a\0b", b"x" * 300, b"..", b"a//b", b"./plugin.json", b""):
        yield f"lists {path[:20]!r}", line + b"0" * 64 + b"  " + path + b"\n"
    yield "lists 14000 files", b"".join(b"%064d  f%d\n" % (i, i) for i in range(14_000))
    yield "lists a file twice", line + line
    yield "carriage returns", line.replace(b"\n", b"\r\n")


# --- configuration --------------------------------------------------------------------------------------------


def configs():
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    yield "aliases that multiply", bomb.encode()
    yield "an alias of itself", b"a: &a [*a]\n"
    yield "merge keys", b"base: &b {lr: 1}\n<<: *b\n"
    yield "flow nested 100000 deep", b"graph: " + b"[" * 100_000
    yield "flow nested 100000 deep, closed", b"graph: " + b"[" * 100_000 + b"]" * 100_000
    yield "maps nested 100000 deep", b"graph: " + b"{a: " * 100_000
    yield "blocks nested 2000 deep", b"".join(b" " * i + b"a:\n" for i in range(2_000))
    yield "lists nested 100000 deep", b"- " * 100_000 + b"a"
    yield "100000 keys", b"".join(b"k%d: 1\n" % i for i in range(100_000))
    yield "100000 documents", b"---\na: 1\n" * 100_000
    yield "a line of 8 MiB", b"graph: " + b"x" * (8 << 20)
    yield "a tag", b"graph: !!python/object/apply:os.system ['true']\n"
    yield "a directive", b"%YAML 9.9\n---\nlr: 1\n"
    yield "binary", b"graph: !!binary AAAA\n"
    yield "a NUL in a path", b"graph: \"a\\0b\"\n"
    yield "a path of 300", b"graph: " + b"x" * 300 + b"\n"
    yield "keys of any type", b"? [a, b]\n: 1\n? {c: d}\n: 2\n"
    yield "numbers beyond all bounds", b"batch_size: 999999999999999999999999\nlr: 1e999\n"
    yield "ring of -1", b"ring_memory: -1\n"
    yield "a date", b"seed: 2001-12-14t21:59:43.10-05:00\n"


# --- data set -------------------------------------------------------------------------------------------------


def lists():
    yield "paths upwards", b"../../../../etc/passwd|text here\n" * 3
    yield "an absolute path", b"/etc/passwd|text here\n"
    yield "a NUL in an id", b"a\0b|text here\n"
    yield "an id of 300 bytes", b"x" * 300 + b"|text here\n"
    yield "a line of 16 MiB", b"clip0|" + b"x" * (16 << 20) + b"\n"
    yield "20000 clips that are not there", b"".join(b"c%d|t\n" % i for i in range(20_000))
    yield "only separators", b"|||||\n" * 1000
    yield "the same id twice", b"clip0|text here\nclip0|text here\n"
    yield "invalid UTF-8", b"clip0|\xff\xfe\xfd text\n"
    yield "no line", b""
    yield "an id that is a folder", b".|text here\n"


def sounds(samples: bytes):
    yield "data of 4 GiB declared", g.wav_file(samples, data_size=0xFFFFFFFF, riff_size=0xFFFFFFFF)
    yield "data of 2 GiB declared", g.wav_file(samples, data_size=0x7FFFFFFF)
    yield "no data", g.wav_file(b"")
    yield "rate of 0", g.wav_file(samples, rate=0)
    yield "rate of 1", g.wav_file(samples, rate=1)
    yield "rate of 2^32 - 1", g.wav_file(samples, rate=2**32 - 1)
    yield "no channels", g.wav_file(samples, channels=0)
    yield "65535 channels", g.wav_file(samples, channels=65535)
    yield "0 bits", g.wav_file(samples, bits=0)
    yield "64 bits", g.wav_file(samples, bits=64)
    yield "float of 16 bits", g.wav_file(samples, kind=3)
    yield "compressed", g.wav_file(samples, kind=85)
    yield "a chunk of 4 GiB before the data", b"RIFF\xff\xff\xff\xffWAVEjunk\xff\xff\xff\xff" + samples
    yield "empty chunks", b"RIFF\xff\xff\xff\xffWAVE" + b"junk\0\0\0\0" * 100_000
    yield "floats that are not numbers", g.wav_file(struct.pack("<f", float("nan")) * 9000, kind=3, bits=32)
    yield "floats that are infinite", g.wav_file(struct.pack("<f", float("inf")) * 9000, kind=3, bits=32)


def arrays(data: bytes):
    """Yields .npy files that are well formed and have invalid headers or values."""
    yield "Python objects", g.npy_file(b"cos\nsystem\n(S'touch /tmp/x'\ntR.", "'|O'")
    yield "a structured type", g.npy_file(data, "[('a', '<i8')]")
    yield "big-endian", g.npy_file(data, "'>i8'")
    yield "a header of 4 GiB", g.npy_file(data, version=2, length=0xFFFFFFFF)
    yield "a header of 1 MiB of brackets", g.npy_file(data, shape="(" * (1 << 20))
    yield "version 255", g.npy_file(data, version=255)
    yield "2^62 elements", g.npy_file(data, shape="(4611686018427387904,)")
    yield "a shape whose product overflows", g.npy_file(data, shape="(4294967296, 4294967296)")
    yield "no axis", g.npy_file(data, shape="()")
    yield "100000 axes", g.npy_file(data, shape="(" + "1," * 100_000 + ")")
    yield "a negative size", g.npy_file(data, shape="(-12,)")
    yield "an expression", g.npy_file(data, shape="__import__('os').system('true')")
    yield "Fortran order", g.npy_file(data, shape="(3, 4)", order="True")
    yield "other steps than its fellow", g.npy_file(data[:8], shape="(1,)")
    yield "values below 0", g.npy_file(struct.pack(f"<{g.STEPS}q", *range(-g.STEPS, 0)))
    yield "values beyond i32", g.npy_file(struct.pack(f"<{g.STEPS}q", *[1 << 40] * g.STEPS))
    yield "floats", g.npy_file(struct.pack(f"<{g.STEPS}d", *[float("nan")] * g.STEPS), "'<f8'")


def columns(line: dict):
    """Yields lists whose first line has values that a column cannot have."""
    def with_(**changes):
        return "".join(json.dumps(line | x) + "\n" for x in (changes, {"id": "other"})).encode()

    for path in (PASSWD, "/etc/passwd.npy", "../" * 40 + "etc/passwd.npy", "a\0.npy", "\n.npy", "", ".npy", "/dev/zero.npy", "x" * 70_000 + ".npy"):
        yield f"array {path[:20]!r}", with_(steps=path)
    for reference in ("arrays.safetensors", "arrays.safetensors#", "arrays.safetensors#clip9", "a.safetensors#" * 9, "arrays/clip0.npy#x"):
        yield f"tensor {reference!r}", with_(curve=reference)
    yield "a list for a file", with_(steps=[1, 2])
    yield "nested 5000 deep", with_(text="x").replace(b'"x"', b"[" * 5000 + b"]" * 5000, 1)
    yield "no column", json.dumps({key: x for key, x in line.items() if key != "steps"}).encode()
    yield "a symbol that is none", with_(text="\u202e")
    yield "a symbol of 500 KiB", with_(text="é" * 250_000)


# --- checkpoint -----------------------------------------------------------------------------------------------


def sign_checkpoint(checkpoint: pathlib.Path):
    """Writes MANIFEST again, so that the file itself is read."""
    names = ("optimizer.safetensors", "params.safetensors", "state.json")
    small = [n for n in names if (checkpoint / n).is_file() and (checkpoint / n).stat().st_size < 1 << 30]
    if len(small) == len(names):
        (checkpoint / "MANIFEST").write_text("".join(f"{g.sha256(checkpoint / n)}  {n}\n" for n in names))


def states(checkpoint: pathlib.Path):
    value = json.loads((checkpoint / "state.json").read_text())
    for key in ("step", "optimizer_step", "epoch", "batch", "samples", "frames", "evaluated_step"):
        for number in (-1, 2**63 - 1, 2**64, 1e300):
            yield f"{key} {number:g}", json.dumps(value | {key: number}).encode()
    yield "quarantine of 100000 rows", json.dumps(value | {"quarantine": [{"id": f"r{i}", "reason": "x"} for i in range(100_000)]}).encode()
    yield "another version", json.dumps(value | {"version": 3}).encode()
    yield "a schedule that never ends", json.dumps(value | {"schedule": value["schedule"] | {"total_steps": 2**63 - 1}}).encode()
    yield from of_json(value)


def copy(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    shutil.copytree(source, target, symlinks=True) if source.is_dir() else shutil.copy(source, target)
    return target
