"""lock.py REPORT: writes requirements.lock, with the version and the hash of each package that pip would install."""

import hashlib
import json
import pathlib
import platform
import sys

REPORT = json.loads(pathlib.Path(sys.argv[1]).read_text())
WANTED = pathlib.Path("requirements.txt").read_bytes()

lines = ["# make lock writes this from requirements.txt, whose SHA-256 is", f"# {hashlib.sha256(WANTED).hexdigest()}.",
         f"# It holds for Python {sys.version_info.major}.{sys.version_info.minor} on {sys.platform}-{platform.machine()}: elsewhere, make lock."]
lines += [line for line in WANTED.decode().splitlines() if line.startswith(("--index-url", "--extra-index-url", "--find-links"))]
for package in sorted(REPORT["install"], key=lambda p: p["metadata"]["name"].lower()):
    name, version, source = package["metadata"]["name"], package["metadata"]["version"], package["download_info"]
    sha256 = source.get("archive_info", {}).get("hashes", {}).get("sha256")
    if not sha256:
        sys.exit(f"error: {name} comes from {source['url']}, which has no hash. hint: name a released version")
    lines.append(f"{name}=={version} --hash=sha256:{sha256}")
pathlib.Path("requirements.lock").write_text("\n".join(lines) + "\n")
