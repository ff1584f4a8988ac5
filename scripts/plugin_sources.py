"""Prints what the program of a plugin is built from: the SHA-256 of each source file of this repository, and the sum of each module in go.sum.

    python3 scripts/plugin_sources.py ./plugins/features >plugins/features/plugin.sources

Every compiler that builds the same sources gives the same list, so a run's identity has this list and not the program's bytes.
"""

import hashlib
import json
import os
import subprocess
import sys

# What scripts/libcuda.sh makes the archive of that package cuda is linked with.
LINKED = ["gpu/cuda/libcuda/libcuda.c", "gpu/cuda/libcuda/libcuda.h", "scripts/libcuda.sh"]
KINDS = ["GoFiles", "CgoFiles", "CFiles", "HFiles", "SFiles", "EmbedFiles"]


def ours(module: dict) -> bool:
    """Whether a module is a folder, as this repository and shared in it are, and has no sum in go.sum."""
    return "Main" in module or "Replace" in module and "Version" not in module["Replace"]


def main() -> None:
    fields = ",".join(["Dir", "Module", *KINDS])
    packages = subprocess.run(["go", "list", "-deps", f"-json={fields}", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    files, modules = list(LINKED), set()
    decoder, at = json.JSONDecoder(), 0
    while at < len(packages):
        package, at = decoder.raw_decode(packages, at)
        at += 1  # the line feed
        module = package.get("Module")
        if module and ours(module):
            files += [os.path.join(package["Dir"], name) for kind in KINDS for name in package.get(kind, [])]
        elif module:  # not the standard library, which belongs to the compiler
            modules.add(f"{module['Path']} {module['Version']}")
    for file in sorted(os.path.relpath(file) for file in files):
        print(hashlib.sha256(open(file, "rb").read()).hexdigest(), "", file)
    for line in sorted(open("go.sum", encoding="utf-8")):
        module, _, total = line.strip().rpartition(" ")
        if module in modules:
            print(total, "", module)
            modules.remove(module)
    if modules:
        sys.exit(f"error: go.sum has no sum of {', '.join(sorted(modules))}\nhint: go mod tidy")


main()
