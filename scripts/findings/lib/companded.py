"""companded.py FILE 6|7: turns a WAV file of 16 bits into one of A-law (6) or mu-law (7), with the sign and the exponent of G.711."""
import struct
import sys
import wave

path, code = sys.argv[1], int(sys.argv[2])
with wave.open(path) as f:
    rate, samples = f.getframerate(), struct.unpack(f"<{f.getnframes()}h", f.readframes(f.getnframes()))


def mulaw(value: int) -> int:
    level = min(abs(value) + 132, 32767)
    exponent = level.bit_length() - 8
    return ~((128 if value < 0 else 0) | exponent << 4 | level >> exponent + 3 & 15) & 255


def alaw(value: int) -> int:
    level = abs(value) >> 4
    exponent = max(level.bit_length() - 4, 0)
    byte = exponent << 4 | (level >> max(exponent - 1, 0) & 15)
    return (byte | (0 if value < 0 else 128)) ^ 0x55


data = bytes(map(alaw if code == 6 else mulaw, samples))
head = struct.pack("<HHIIHH", code, 1, rate, rate, 1, 8)
with open(path, "wb") as f:
    f.write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(data)) + data)
