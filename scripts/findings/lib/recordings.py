"""recordings.py FOLDER SET: makes a data set whose recordings are as programs and the world leave them, each 1 s of a tone.

SET is sizes, tags, ends, starts, mp3, rates or lost. The lossy inputs are the test files of the decoder.
"""

import array
import math
import pathlib
import struct
import sys

folder, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
tests = pathlib.Path(__file__).resolve().parents[3] / "shared/audio"
(folder / "wavs").mkdir(parents=True)


def tone(rate, n):
    return array.array("h", [int(8000 * math.sin(i * 700 / rate * 6.28)) for i in range(n)]).tobytes()


def wav(rate=16000, size=None, riff=None, align=2, after=b"", pcm=None):
    pcm = tone(rate, rate) if pcm is None else pcm
    body = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, align, 16)
    body += b"data" + struct.pack("<I", len(pcm) if size is None else size) + pcm + after
    return b"RIFF" + struct.pack("<I", len(body) if riff is None else riff) + body


def wave64(rate=16000):
    end = bytes.fromhex("f3acd3118cd100c04f8edb8a")
    pcm = tone(rate, rate)
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    body = b"wave" + end + b"fmt " + end + struct.pack("<Q", 40) + form + b"data" + end + struct.pack("<Q", 24 + len(pcm)) + pcm
    return bytes.fromhex("726966662e91cf11a5d628db04c10000") + struct.pack("<Q", 24 + len(body)) + body


def test(name):
    return (tests / name).read_bytes()


pcm, chunk = tone(16000, 16000), b"LIST\x04\0\0\0abcd"
flac, ogg, mp3 = test("internal/flac/testdata/8-16000-1.flac"), test("testdata/vorbis-22050-1.ogg"), test("testdata/mpeg1-44100-1.mp3")
opus, celt = test("testdata/silk-48000-1.opus"), test("testdata/celt-48000-2.opus")
pages = test("testdata/vorbis-44100-2.ogg")
id3 = b"ID3\x04\0\0\0\0\x02\0" + bytes(256)
ape = b"APETAGEX" + struct.pack("<IIII", 2000, 32, 0, 0xA0000000) + bytes(8) + b"APETAGEX" + struct.pack("<IIII", 2000, 32, 0, 0x80000000) + bytes(8)
no_length = bytearray(flac)
no_length[21] &= 0xF0
no_length[22:26] = bytes(4)
sets = {
    "sizes": {
        "sox.wav": wav(size=0x7FFFF000, riff=0x7FFFF024), "arecord.wav": wav(size=0x80000000, riff=0x80000024),
        "ffmpeg.wav": wav(size=0xFFFFFFFF, riff=0xFFFFFFFF), "none.wav": wav(size=0, riff=0), "long.wav": wav(size=len(pcm) + 16),
        "list.wav": wav(size=0x7FFFF000, after=chunk), "within.wav": wav(size=len(pcm) + 6, after=chunk), "odd.wav": wav(pcm=pcm + b"x"),
        "align.wav": wav(align=1), "wave64.wav": wave64(),
    },
    "tags": {
        "id3.flac": id3 + flac, "id3.wav": id3 + wav(), "id3.ogg": id3 + ogg, "ape.mp3": ape + mp3, "both.mp3": id3 + ape + mp3,
        "padding.mp3": b"ID3\x04\0\0\0\0\0\x20" + bytes(32 + 400) + mp3, "apeflac.flac": ape + flac, "voice.oga": opus, "loud.OGA": ogg,
        "after.mp3": mp3 + b"other bytes", "after.flac": flac + b"TAG" + bytes(125),
    },
    "ends": {
        "page.ogg": pages[:8394], "mid.ogg": pages[:8600], "opus.opus": celt[:9000], "flac.flac": flac[:-20], "mp3.mp3": mp3[:-50],
        "stream.flac": bytes(no_length), "wav.wav": wav()[:-9000],
    },
    "starts": {f"cut-{n}.mp3": mp3[n:] for n in (301, 700, 1100)},
    "mp3": {name: test("testdata/" + name) for name in
            ("mpeg2-22050-1.mp3", "mpeg25-8000-1.mp3", "mpeg25-12000-2.mp3", "free-16000-2.mp3")},
    "rates": {f"r{rate}.wav": wav(rate) for rate in (4001, 11111, 22051, 44056, 47999, 96001, 191999)},
    "lost": {"good.wav": wav(), "short.wav": wav()[:5000], "short.flac": flac[:len(flac) // 3]},
}
lines = ""
for name, data in sets[kind].items():
    stem, ending = name.rsplit(".", 1)
    stem += "-" + ending.lower()  # one id for each file
    (folder / "wavs" / f"{stem}.{ending}").write_bytes(data)
    lines += f"{stem}|hello there, number {len(lines)}\n"
(folder / "metadata.csv").write_text(lines)
