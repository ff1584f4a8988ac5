"""spoil.py FILE TENSOR ELEMENT VALUE: sets a value (nan, inf, a number) of a tensor of a safetensors file, and the sum of the file
in a MANIFEST or bundle.json beside it. spoil.py FILE: fails, and says where, if a value of the file is not finite."""
import array
import hashlib
import json
import math
import pathlib
import struct
import sys

file = pathlib.Path(sys.argv[1])
data = bytearray(file.read_bytes())
(length,) = struct.unpack_from("<Q", data)
header = json.loads(data[8:8 + length])
if len(sys.argv) == 2:
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            values = array.array("f", bytes(data[8 + length + begin:8 + length + end]))
            if not math.isfinite(sum(values)):
                i = next(i for i, v in enumerate(values) if not math.isfinite(v))
                sys.exit(f"{file}: {name}, element {i}: {values[i]}")
    sys.exit()
name, element, value = sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
struct.pack_into("<f", data, 8 + length + header[name]["data_offsets"][0] + 4 * element, value)
before = hashlib.sha256(file.read_bytes()).hexdigest()
file.write_bytes(data)
for sums in file.parent / "MANIFEST", file.parent / "bundle.json":
    if sums.exists():
        sums.write_text(sums.read_text().replace(before, hashlib.sha256(data).hexdigest()))
