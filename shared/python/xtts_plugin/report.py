"""What a stage reports of its draws, as JSON."""
import json
import math

import numpy as np

MOST = 64 << 10  # bytes of JSON for a row


def encoded(row, values):
    """The JSON object of a row's values, by name. ValueError if it is too long, TypeError if a value is not JSON."""
    try:
        text = json.dumps({name: plain(value) for name, value in values.items()}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as e:
        raise TypeError(f"the report of row {row} is not JSON: {e}") from None
    if len(text) > MOST:
        raise ValueError(f"the report of row {row} has {len(text)} bytes, more than {MOST}")
    return text


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
