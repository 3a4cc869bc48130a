#!/usr/bin/env python3
"""Packs a serving engine, Thresher and its package for that engine into a few files, for a machine that reaches no package index.

  engine_bundle.py make ENGINE BUILD FOLDER [--there FILE] [--part-mib N] [--whole]
  engine_bundle.py unpack FOLDER SITE ENGINE

make: fetches ENGINE (vllm or sglang) and what it needs by pip, for Python 3.12 on x86-64, and writes FOLDER/ENGINE.I-of-N.tar.xz of at
    most N MiB each (48 MiB when left out), unless FOLDER has them. FOLDER/ENGINE.thresher.tar.xz has Thresher's wheels of BUILD, made by
    `scripts/python.sh wheel BUILD`, and is always written anew.
    FILE: `pip freeze` of that machine, whose packages are left out unless ENGINE asks for another version. Its torch is kept.
unpack: the parts that FOLDER has into SITE, and Thresher anew. Exits with 1 and names them while some are missing.

Without --whole, libraries keep their machine code for Hopper alone: the rest of a fat binary becomes zeros, which take no room when
compressed. That halves the parts.
"""

import argparse
import json
import lzma
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
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
# Brought whatever they ask for, which is a newer torch.
WITHOUT_NEEDS = ("sglang-kernel",)
# Of the engine's own wheel.
FILES_LEFT_OUT = re.compile(r"_vllm_fa2_C|vllm/vllm-rs$|_flashkda_C|_deepselect_C|_qutlass_C|third_party/fmha_sm100/|/hip/|\.pyi$|swagger")
# Brought by others, too large, and not imported.
OTHERS_LEFT_OUT = {"opencv-python-headless", "cuda-bindings", "cuda-pathfinder", "networkx", "sympy", "mpmath", "triton", "setuptools"}
PYTHON = ["--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp", "--abi", "cp312", "--abi", "abi3", "--abi", "none",
          *(f"--platform=manylinux_2_{minor}_x86_64" for minor in range(39, 4, -1)), "--platform=manylinux2014_x86_64",
          "--platform=linux_x86_64", "--platform=any"]
HOPPER = 90
_PRESET, _LARGE = 6, 1 << 20
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
    alone = [one for one in asked if one.partition("==")[0] in WITHOUT_NEEDS]
    wanted.write_text("".join(f"{one}\n" for one in asked if one not in alone))
    constraints.write_text(f"torch=={there.get('torch', '2.11.0')}\n")
    pip("install", "--dry-run", "--ignore-installed", "--ignore-requires-python", "--target", str(folder / "none"), *PYTHON,
        "--report", str(report), "-c", str(constraints), "-r", str(wanted))
    found = {normal(one["metadata"]["name"]): one["metadata"]["version"] for one in json.loads(report.read_text())["install"]}
    pinned = {normal(one.partition("==")[0].partition("[")[0]) for one in asked if "==" in one}
    missing = [f"{name}=={version}" for name, version in found.items()
               if name not in OTHERS_LEFT_OUT and name != "torch" and not name.startswith(("nvidia-", "cuda-toolkit"))
               and (name not in there or name in pinned and there[name] not in ("", version))] + alone
    pip("download", "--no-deps", *PYTHON, "-d", str(wheels), *missing)
    names = {normal(one.partition("==")[0]) for one in missing}
    return [own, *sorted(one for one in wheels.glob("*.whl") if one != own and normal(one.name.partition("-")[0]) in names)]


def entries(data: bytes):
    """(kind, architecture, where its bytes are, how many) of each piece of each fat binary, by binary."""
    at = data.find(FAT_BINARY)
    while 0 <= at <= len(data) - 16:
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


def unpacked(wheels: list[pathlib.Path], site: pathlib.Path, is_whole: bool = False) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            for one in opened.infolist():
                if one.is_dir() or FILES_LEFT_OUT.search(one.filename):
                    continue
                name = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", one.filename)
                if re.match(r"[^/]+\.data/", name):
                    continue
                data = opened.read(one)
                path = site / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data if is_whole or not name.endswith(".so") else hopper_alone(data))


def compressed(path: pathlib.Path) -> int:
    """About how many bytes a file takes in a part: small ones compress well together."""
    size = path.stat().st_size
    return len(lzma.compress(path.read_bytes(), preset=_PRESET)) if size > _LARGE else size // 6 + 64


def packed(site: pathlib.Path, folder: pathlib.Path, engine: str, part_bytes: int) -> None:
    """Large files first, each in the first part that has room."""
    parts: list[list[pathlib.Path]] = []
    room: list[int] = []
    for size, path in sorted(((compressed(one), one) for one in site.rglob("*") if one.is_file()), reverse=True):
        if size > part_bytes:
            raise SystemExit(f"{path.relative_to(site)} takes {size} bytes, more than a part of {part_bytes}")
        at = next((i for i, left in enumerate(room) if left >= size), len(parts))
        if at == len(parts):
            parts.append([])
            room.append(part_bytes)
        parts[at].append(path)
        room[at] -= size
    for at, paths in enumerate(parts, 1):
        archive(folder / f"{engine}.{at}-of-{len(parts)}.tar.xz", site, sorted(paths))


def archive(file: pathlib.Path, site: pathlib.Path, paths: list[pathlib.Path]) -> None:
    with tarfile.open(file, "w:xz", preset=_PRESET) as opened:
        for path in paths:
            opened.add(path, str(path.relative_to(site)))


def make(given: argparse.Namespace) -> None:
    folder = pathlib.Path(given.folder)
    lines = pathlib.Path(given.there).read_text().split() if given.there else []
    there = {normal(name): version for name, _, version in (line.partition("==") for line in lines)}
    built = pathlib.Path(given.build, "wheel")
    own = [*built.glob("portable/thresher-*.whl"), *built.glob(f"engines/thresher_{given.engine}-*.whl")]
    if len(own) != 2:
        raise SystemExit(f"{built} holds {len(own)} of Thresher's two wheels: run scripts/python.sh wheel {given.build} first")
    if not any(folder.glob(f"{given.engine}.*-of-*.tar.xz")):
        site = folder / f"{given.engine}.site"
        shutil.rmtree(site, ignore_errors=True)
        unpacked(fetched(given.engine, folder, there), site, given.whole)
        packed(site, folder, given.engine, given.part_mib << 20)
    with tempfile.TemporaryDirectory() as site:
        unpacked(own, pathlib.Path(site))
        files = sorted(one for one in pathlib.Path(site).rglob("*") if one.is_file())
        archive(folder / f"{given.engine}.thresher.tar.xz", pathlib.Path(site), files)
    for part in sorted(folder.glob(f"{given.engine}.*.tar.xz")):
        print(part, f"{part.stat().st_size / 2**20:.1f} MiB")


def unpack(given: argparse.Namespace) -> None:
    site = pathlib.Path(given.site)
    done = site / ".parts"
    done.mkdir(parents=True, exist_ok=True)
    own = f"{given.engine}.thresher.tar.xz"
    for part in sorted(pathlib.Path(given.folder).glob(f"{given.engine}.*.tar.xz")):
        if part.name == own or not (done / part.name).exists():
            subprocess.run(["tar", "-C", str(site), "-xJf", str(part)], check=True)
            (done / part.name).touch()
    names = {one.name for one in done.glob(f"{given.engine}.*")}
    count = next((int(found[1]) for found in map(re.compile(r".*-of-(\d+)\.").match, names) if found), None)
    wanted = [own, *([f"{given.engine}.{at}-of-{count}.tar.xz" for at in range(1, count + 1)] if count else [f"the parts of {given.engine}"])]
    missing = [one for one in wanted if one not in names]
    if missing:
        print(f"still missing: {', '.join(missing)}")
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
    making.add_argument("--whole", action="store_true")
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
