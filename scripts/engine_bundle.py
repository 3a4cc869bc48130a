#!/usr/bin/env python3
"""Packs a serving engine, Thresher and its package for that engine into a few files, for a machine that reaches no package index.

  engine_bundle.py make ENGINE BUILD FOLDER [--there FILE] [--part-mib N]
  engine_bundle.py unpack FOLDER SITE ENGINE

make: fetches ENGINE (vllm or sglang) and what it needs by pip, for Python 3.12 on x86-64, and writes FOLDER/ENGINE.I-of-N.tar.xz of at
    most N MiB each (48 MiB when left out). Thresher's wheels are those of BUILD, made by `scripts/python.sh wheel BUILD`.
    FILE: `pip freeze` of that machine, whose packages are left out unless ENGINE asks for another version. Its torch is kept.
unpack: the parts that FOLDER has, once each, into SITE. Exits with 1 and names them while some are missing.

Machine code in libraries is kept for Hopper alone: the rest of a fat binary becomes zeros, which take no room when compressed.
"""

import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import zipfile

RELEASES = {"vllm": "0.33.0", "sglang": "0.5.23"}
# Asked for, but imported by no model and option that is served here, or of no use without the machine's own torch.
LEFT_OUT = {
    "vllm": ("torch", "torchaudio", "torchvision", "torchcodec", "pynvvideocodec", "flashinfer-python", "tilelang", "nvidia-cudnn-frontend",
             "fastsafetensors", "instanttensor", "nvidia-cutlass-dsl", "quack-kernels", "tokenspeed-mla", "humming-kernels", "numba",
             "opencv-python-headless", "setuptools"),
    "sglang": ("torch", "torchaudio", "torchvision", "torchcodec", "flashinfer-python", "flash-attn-4", "tilelang", "nvidia-cutlass-dsl",
               "quack-kernels", "humming-kernels", "nvidia-mathdx", "cuda-python", "nvshmem4py-cu13", "sgl-deep-ep", "sgl-flash-mla",
               "modelscope", "smg-grpc-servicer", "numba", "timm", "scipy", "py-spy", "soundfile", "ipython", "datasets", "gguf",
               "deepseek-recipe", "tml-renderers"),
}
# Of the engine's own wheel.
FILES_LEFT_OUT = re.compile(r"_vllm_fa2_C|vllm/vllm-rs$|_flashkda_C|_deepselect_C|_qutlass_C|third_party/fmha_sm100/|/hip/|\.pyi$|swagger")
# Brought by others, too large, and not imported.
OTHERS_LEFT_OUT = {"opencv-python-headless", "cuda-bindings", "cuda-pathfinder", "networkx", "sympy", "mpmath", "triton", "setuptools"}
PYTHON = ["--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp", "--abi", "cp312", "--abi", "abi3", "--abi", "none",
          *(f"--platform=manylinux_2_{minor}_x86_64" for minor in range(39, 4, -1)), "--platform=manylinux2014_x86_64",
          "--platform=linux_x86_64", "--platform=any"]
HOPPER = 90
FAT_BINARY = b"\x50\xed\x55\xba"
PTX, CUBIN = 1, 2


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check", "--no-input"], check=True)


def requirements(wheel: pathlib.Path) -> list[str]:
    with zipfile.ZipFile(wheel) as opened:
        name = next(one for one in opened.namelist() if one.endswith(".dist-info/METADATA"))
        text = opened.read(name).decode().split("\n\n")[0]
    return [line.removeprefix("Requires-Dist: ") for line in text.splitlines() if line.startswith("Requires-Dist: ") and "extra ==" not in line]


def fetched(engine: str, folder: pathlib.Path, there: dict[str, str]) -> list[pathlib.Path]:
    """The wheels that the machine lacks, the engine's own first."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    pip("download", "--no-deps", *PYTHON, "-d", str(wheels), f"{engine}=={RELEASES[engine]}")
    own = next(wheels.glob(f"{engine}-{RELEASES[engine]}-*.whl"))
    asked = [one for one in requirements(own) if normal(re.split(r"[^\w.-]", one)[0]) not in LEFT_OUT[engine]]
    wanted, constraints, report = folder / "wanted.txt", folder / "constraints.txt", folder / "report.json"
    wanted.write_text("\n".join(asked) + "\n")
    constraints.write_text(f"torch=={there.get('torch', '2.11.0')}\n")
    pip("install", "--dry-run", "--ignore-installed", "--ignore-requires-python", "--target", str(folder / "none"), *PYTHON,
        "--report", str(report), "-c", str(constraints), "-r", str(wanted))
    found = {normal(one["metadata"]["name"]): one["metadata"]["version"] for one in json.loads(report.read_text())["install"]}
    pinned = {normal(one.partition("==")[0].partition("[")[0]) for one in asked if "==" in one}
    missing = [f"{name}=={version}" for name, version in found.items()
               if name not in OTHERS_LEFT_OUT and name not in ("torch",) and not name.startswith(("nvidia-", "cuda-toolkit"))
               and (name not in there or name in pinned and there[name] not in ("", version))]
    pip("download", "--no-deps", *PYTHON, "-d", str(wheels), *missing)
    names = {normal(one.partition("==")[0]) for one in missing}
    return [own, *sorted(one for one in wheels.glob("*.whl") if one != own and normal(one.name.partition("-")[0]) in names)]


def entries(data: bytes):
    """(kind, architecture, where its bytes are, how many) of each piece of each fat binary, by binary."""
    at = data.find(FAT_BINARY)
    while at >= 0:
        version, header, size = struct.unpack_from("<HHQ", data, at + 4)
        end = at + header + size
        if version == 1 and header == 16 and end <= len(data):
            one, pieces = at + header, []
            while one < end:
                kind, _, length, bytes_ = struct.unpack_from("<HHIQ", data, one)
                pieces.append((kind, struct.unpack_from("<I", data, one + 28)[0], one + length, bytes_))
                one += length + bytes_
            yield pieces
        at = data.find(FAT_BINARY, at + 4)


def hopper_alone(data: bytes) -> bytes:
    """A library whose other machine code is zeros. A binary without code for Hopper keeps its newest PTX that runs there."""
    made = bytearray(data)
    for pieces in entries(data):
        has_code = any(kind == CUBIN and arch == HOPPER for kind, arch, _, _ in pieces)
        newest = max((arch for kind, arch, _, _ in pieces if kind == PTX and arch <= HOPPER), default=0)
        for kind, arch, at, size in pieces:
            is_kept = (kind, arch) == (CUBIN, HOPPER) if has_code else (kind, arch) == (PTX, newest)
            if not is_kept:
                made[at : at + size] = bytes(size)
    return bytes(made)


def unpacked(wheels: list[pathlib.Path], site: pathlib.Path) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            for one in opened.infolist():
                if one.is_dir() or wheel == wheels[0] and FILES_LEFT_OUT.search(one.filename):
                    continue
                name = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", one.filename)
                if re.match(r"[^/]+\.data/", name):
                    continue
                data = opened.read(one)
                path = site / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(hopper_alone(data) if name.endswith(".so") and FAT_BINARY in data else data)


def packed(site: pathlib.Path, folder: pathlib.Path, engine: str, part_bytes: int) -> list[pathlib.Path]:
    """Large files first, each where there is room. A file is compressed by itself to learn how large it becomes."""
    import lzma

    sizes = {}
    small = []
    for path in sorted(one for one in site.rglob("*") if one.is_file()):
        if path.stat().st_size > 1 << 20:
            sizes[path] = len(lzma.compress(path.read_bytes(), preset=6))
        else:
            small.append(path)
    parts: list[list[pathlib.Path]] = []
    room: list[int] = []
    for path, size in sorted(sizes.items(), key=lambda one: -one[1]):
        if size > part_bytes:
            raise SystemExit(f"{path.relative_to(site)} takes {size} bytes, more than a part of {part_bytes}")
        at = next((i for i, left in enumerate(room) if left >= size), len(parts))
        if at == len(parts):
            parts.append([])
            room.append(part_bytes)
        parts[at].append(path)
        room[at] -= size
    # Small files compress well together: a sixth of their size at the most, by what was seen.
    for path in small:
        size = path.stat().st_size // 6 + 64
        at = next((i for i, left in enumerate(room) if left >= size), len(parts))
        if at == len(parts):
            parts.append([])
            room.append(part_bytes)
        parts[at].append(path)
        room[at] -= size
    for old in folder.glob(f"{engine}.*.tar.xz"):
        old.unlink()
    made = []
    for at, paths in enumerate(parts, 1):
        made.append(folder / f"{engine}.{at}-of-{len(parts)}.tar.xz")
        with tarfile.open(made[-1], "w:xz", preset=6) as archive:
            for path in paths:
                archive.add(path, str(path.relative_to(site)))
    return made


def make(given: argparse.Namespace) -> None:
    folder = pathlib.Path(given.folder)
    lines = pathlib.Path(given.there).read_text().split() if given.there else []
    there = {normal(name): version for name, _, version in (line.partition("==") for line in lines)}
    own = [*pathlib.Path(given.build, "wheel/portable").glob("thresher-*.whl"), *pathlib.Path(given.build, "wheel/engines").glob(f"thresher_{given.engine}-*.whl")]
    if len(own) != 2:
        raise SystemExit(f"{given.build}/wheel holds {len(own)} of Thresher's two wheels: run scripts/python.sh wheel {given.build} first")
    site = folder / f"{given.engine}.site"
    subprocess.run(["rm", "-rf", str(site)], check=True)
    unpacked(fetched(given.engine, folder, there) + own, site)
    for part in packed(site, folder, given.engine, given.part_mib << 20):
        print(part, f"{part.stat().st_size / 2**20:.1f} MiB")


def unpack(given: argparse.Namespace) -> None:
    site = pathlib.Path(given.site)
    site.mkdir(parents=True, exist_ok=True)
    done = site / ".parts"
    done.mkdir(exist_ok=True)
    for part in sorted(pathlib.Path(given.folder).glob(f"{given.engine}.*-of-*.tar.xz")):
        if not (done / part.name).exists():
            subprocess.run(["tar", "-C", str(site), "-xJf", str(part)], check=True)
            (done / part.name).touch()
    names = sorted(one.name for one in done.glob(f"{given.engine}.*"))
    count = int(re.search(r"-of-(\d+)\.", names[0])[1]) if names else 0
    missing = [f"{given.engine}.{at}-of-{count}.tar.xz" for at in range(1, count + 1) if f"{given.engine}.{at}-of-{count}.tar.xz" not in names]
    if missing or not names:
        print(f"still missing: {', '.join(missing) or f'every part of {given.engine}'}")
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("make")
    making.add_argument("engine", choices=sorted(RELEASES))
    making.add_argument("build")
    making.add_argument("folder")
    making.add_argument("--there")
    making.add_argument("--part-mib", type=int, default=48)
    making.set_defaults(run=make)
    unpacking = commands.add_parser("unpack")
    unpacking.add_argument("folder")
    unpacking.add_argument("site")
    unpacking.add_argument("engine", choices=sorted(RELEASES))
    unpacking.set_defaults(run=unpack)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
