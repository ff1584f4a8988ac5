"""Reads the event files of a run with TensorBoard's own reader, and compares them with metrics.jsonl and eval.jsonl.

    python check.py RUN           the files, with event_accumulator
    python check.py RUN URL       what a TensorBoard that serves the parent folder of RUN answers at URL
"""

import json
import pathlib
import struct
import sys
import urllib.parse
import urllib.request


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def single(value):
    """The value as f32, which event files have."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def wanted(run):
    """(step, value) of each tag, from the lines of the run."""
    fixed = {"step", "epoch", "samples", "frames", "bucket", "skipped", "skipped_players", "eval_ms"}
    tags = {}
    for line in lines(run / "metrics.jsonl"):
        for key, value in line.items():
            if key in fixed or value is None:
                continue
            group = "speed" if key in ("step_ms", "input_wait_ms") else "train"
            tags.setdefault(f"{group}/{key}", []).append((line["step"], single(value)))
    for line in lines(run / "eval.jsonl"):
        for key, value in line.items():
            if key not in fixed and value is not None:
                tags.setdefault(f"eval/{key}", []).append((line["step"], single(value)))
    if (run / "spoken.jsonl").exists():
        measured = {}
        for line in lines(run / "spoken.jsonl"):
            name = f"clip-{line['clip']}" if "clip" in line else f"sample-{line['sample']}"
            tags.setdefault(f"spoken/{name}/speech", []).append((line["step"], None))
            for measure, value in line.get("measures", {}).items():
                measured.setdefault((measure, line["step"]), []).append(value)
        for (measure, step), values in measured.items():
            tags.setdefault(f"spoken/{measure}", []).append((step, single(sum(values) / len(values))))
    return tags


def same(tag, got, want):
    """Times are rounded to the microsecond in the lines, and means of measures may be added in another order."""
    close = tag.startswith(("speed/", "spoken/"))
    if [step for step, _ in got] != [step for step, _ in want]:
        sys.exit(f"error: {tag}: steps {[s for s, _ in got]}, in the lines {[s for s, _ in want]}")
    for (step, a), (_, b) in zip(got, want):
        if a != b and not (close and abs(a - b) <= 1e-3 + 1e-6 * abs(b)):
            sys.exit(f"error: {tag} at step {step}: {a!r}, in the line {b!r}")


def files(run):
    from tensorboard.backend.event_processing import event_accumulator as ea

    acc = ea.EventAccumulator(str(run / "tensorboard"), size_guidance={kind: 0 for kind in ea.DEFAULT_SIZE_GUIDANCE})
    acc.Reload()
    tags, want = acc.Tags(), wanted(run)
    for tag, points in want.items():
        if tag.endswith("/speech"):
            sounds = acc.Audio(tag)
            if [s.step for s in sounds] != [step for step, _ in points][-len(sounds):] or not sounds:
                sys.exit(f"error: {tag}: {[s.step for s in sounds]}, spoken {points}")
            if not all(s.encoded_audio_string.startswith(b"RIFF") and s.length_frames > 0 for s in sounds):
                sys.exit(f"error: {tag}: no WAV")
        else:
            same(tag, [(e.step, e.value) for e in acc.Scalars(tag)], points)
    for tag in tags["images"]:
        if not all(i.encoded_image_string.startswith(b"\x89PNG") and i.width > 0 for i in acc.Images(tag)):
            sys.exit(f"error: {tag}: no PNG")
    for tag in tags["histograms"]:
        for h in acc.Histograms(tag):
            if sum(h.histogram_value.bucket) != h.histogram_value.num:
                sys.exit(f"error: {tag}: counts")
    config = acc.Tensors("run/config")[-1].tensor_proto.string_val[0].decode()
    if "batch_size" not in config:
        sys.exit("error: run/config has no settings")
    kinds = {kind: len(tags[kind]) for kind in ("scalars", "histograms", "images", "audio", "tensors")}
    print(f"{run.name}: {kinds}, values equal the lines of {len(want)} names")


def served(run, url):
    def get(path, **query):
        with urllib.request.urlopen(f"{url}/{path}?{urllib.parse.urlencode(query)}", timeout=60) as answer:
            return json.load(answer)

    name = f"{run.name}/tensorboard"
    tags = get("data/plugin/scalars/tags")
    if name not in tags:
        sys.exit(f"error: TensorBoard shows {list(tags)}, not {name}")
    for tag, points in wanted(run).items():
        if tag.endswith("/speech"):
            if not get("data/plugin/audio/audio", run=name, tag=tag, sample=0):
                sys.exit(f"error: {tag}: not served")
            continue
        got = [(step, value) for _, step, value in get("data/plugin/scalars/scalars", run=name, tag=tag)]
        same(tag, got, [p for p in points if p[0] in {step for step, _ in got}])
        if len(got) < min(len(points), 500):
            sys.exit(f"error: {tag}: {len(got)} of {len(points)} points are served")
    if "batch_size" not in get("data/plugin/text/text", run=name, tag="run/config")[-1]["text"]:
        sys.exit("error: run/config is not served")
    print(f"{run.name}: TensorBoard serves {len(tags[name])} curves")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]).resolve()
    served(folder, sys.argv[2]) if len(sys.argv) > 2 else files(folder)
