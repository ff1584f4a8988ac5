"""What a stage reports of its draws, as JSON."""
import json
import math

import numpy as np

MOST = 64 << 10  # bytes of JSON for a row


def encoded(row, values):
    """The JSON object of a row's values, by name. ValueError if it is too long, TypeError if a value is not JSON."""
    try:
        members = {name: plain(value) for name, value in values.items()}
        text = json.dumps(members, allow_nan=False, ensure_ascii=False)  # the host prints it
    except (TypeError, ValueError, RecursionError) as e:
        raise TypeError(f"the report of row {row} is not JSON: {e}") from None
    data = text.encode(errors="backslashreplace")  # half a character, as of a file's name, is \udc80 in JSON as well
    if len(data) > MOST:
        raise ValueError(f"the report of row {row} has {len(data)} bytes, more than {MOST}")
    return data.decode()


def plain(value):
    """value without what JSON lacks: scalars and arrays of NumPy, and as their names NaN and infinities."""
    if isinstance(value, np.ndarray):
        if value.size > MOST // 2:  # each element takes two bytes or more
            raise ValueError(f"an array of {value.size} elements is too long")
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key.item() if isinstance(key, np.generic) else key: plain(v) for key, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value
