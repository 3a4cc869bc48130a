#!/usr/bin/env python3
"""Packs a serving engine, Thresher and its package for that engine into a few files, for a machine that reaches no package index.

  engine_bundle.py make ENGINE BUILD FOLDER [--there FILE] [--part-mib N] [--whole] [--torch]
  engine_bundle.py unpack FOLDER SITE ENGINE

make: fetches ENGINE (vllm or sglang) and what it needs by pip, for Python 3.12 on x86-64, and writes FOLDER/ENGINE.I-of-N of at most N MiB
    each (48 when left out), unless FOLDER has them. FOLDER/ENGINE-thresher.I-of-N have Thresher's wheels of BUILD, made by
    `scripts/python.sh wheel BUILD`, and are always written anew.
    FILE: `pip freeze` of that machine, whose packages are left out unless ENGINE asks for another version.
    --torch: brings the torch that ENGINE asks for, too; without it that of FILE is used.
    --whole: keeps all machine code in libraries. Without it a fat binary's is kept for Hopper alone, and the rest becomes zeros, which
    take no room when compressed. That halves the parts.
unpack: into SITE, as soon as FOLDER has had all parts in this and earlier calls. Exits with 1 and names them while some are missing.
"""

import argparse
import filecmp
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
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
# Of torch, what else is of its version; the machine's other libraries of CUDA serve it.
TORCH = ("torch", "triton", "nvidia-nccl-cu13")
# Brought without what they ask for, which is a newer torch.
WITHOUT_NEEDS = ("sglang-kernel",)
# Other GPUs, profilers and servers.
FILES_LEFT_OUT = re.compile(r"_vllm_fa2_C|vllm/vllm-rs$|_flashkda_C|_deepselect_C|_qutlass_C|third_party/fmha_sm100/|/hip/|\.pyi$|swagger"
                            r"|sgl_kernel/(sm100/|infllm_ops)|triton/(_C/libproton|backends/(amd/lib|nvidia/lib/cupti))|^torch/(bin|test)/")
# Brought by others, too large, and not imported.
OTHERS_LEFT_OUT = {"opencv-python-headless", "cuda-bindings", "cuda-pathfinder", "networkx", "sympy", "mpmath", "triton", "setuptools"}
PYTHON = ["--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp", "--abi", "cp312", "--abi", "abi3", "--abi", "none",
          *(f"--platform=manylinux_2_{minor}_x86_64" for minor in range(39, 4, -1)), "--platform=manylinux2014_x86_64",
          "--platform=linux_x86_64", "--platform=any"]
HOPPER = 90
LIBRARY = re.compile(r"\.so(\.\d+)*$")
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


def fetched(engine: str, folder: pathlib.Path, there: dict[str, str], brings_torch: bool) -> list[pathlib.Path]:
    """The wheels that the machine lacks, the engine's own first."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    pip("download", "--no-deps", *PYTHON, "-d", str(wheels), f"{engine}=={RELEASES[engine]}")
    own = next(wheels.glob(f"{engine}-{RELEASES[engine]}-*.whl"))
    own_torch = TORCH if brings_torch else ()
    left_out = {*LEFT_OUT[engine], *OTHERS_LEFT_OUT} - {*own_torch}
    asked = [one for one in requirements(own) if normal(re.split(r"[^\w.-]", one)[0]) not in left_out]
    wanted, constraints, report = folder / "wanted.txt", folder / "constraints.txt", folder / "report.json"
    alone = [one for one in asked if one.partition("==")[0] in WITHOUT_NEEDS and not brings_torch]
    wanted.write_text("".join(f"{one}\n" for one in asked if one not in alone))
    constraints.write_text("" if brings_torch else f"torch=={there.get('torch', '2.11.0')}\n")
    pip("install", "--dry-run", "--ignore-installed", "--ignore-requires-python", "--target", str(folder / "none"), *PYTHON,
        "--report", str(report), "-c", str(constraints), "-r", str(wanted))
    found = {normal(one["metadata"]["name"]): one["metadata"]["version"] for one in json.loads(report.read_text())["install"]}
    pinned = {normal(one.partition("==")[0].partition("[")[0]) for one in asked if "==" in one}
    missing = [f"{name}=={version}" for name, version in found.items()
               if name in own_torch or name not in left_out and not name.startswith(("nvidia-", "cuda-toolkit"))
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
                path.write_bytes(data if is_whole or not LIBRARY.search(name) else hopper_alone(data))


def packed(site: pathlib.Path, stem: pathlib.Path, part_bytes: int) -> None:
    """One archive, in parts that are put together before it is unpacked."""
    whole = stem.with_name(f"{stem.name}.tar.xz")
    names = sorted(one.name for one in site.iterdir())
    with open(whole, "wb") as file:
        subprocess.run(["tar", "-C", str(site), "--sort=name", "--use-compress-program=xz -T0 -3", "-cf", "-", *names], stdout=file, check=True)
    data = whole.read_bytes()
    count = -(-len(data) // part_bytes)
    for at in range(count):
        stem.with_name(f"{stem.name}.{at + 1}-of-{count}").write_bytes(data[at * part_bytes : (at + 1) * part_bytes])
    whole.unlink()


def make(given: argparse.Namespace) -> None:
    folder = pathlib.Path(given.folder)
    lines = pathlib.Path(given.there).read_text().split() if given.there else []
    there = {normal(name): version for name, _, version in (line.partition("==") for line in lines)}
    built = pathlib.Path(given.build, "wheel")
    own = [*built.glob("portable/thresher-*.whl"), *built.glob(f"engines/thresher_{given.engine}-*.whl")]
    if len(own) != 2:
        raise SystemExit(f"{built} holds {len(own)} of Thresher's two wheels: run scripts/python.sh wheel {given.build} first")
    made = {given.engine: lambda: fetched(given.engine, folder, there, given.torch), f"{given.engine}-thresher": lambda: own}
    for name, wheels in made.items():
        old = [*folder.glob(f"{name}.*-of-*")]
        if old and name == given.engine:
            continue
        for one in old:
            one.unlink()
        with tempfile.TemporaryDirectory(dir=folder) as site:
            unpacked(wheels(), pathlib.Path(site), given.whole)
            packed(pathlib.Path(site), folder / name, given.part_mib << 20)
    for part in sorted(folder.glob(f"{given.engine}*-of-*")):
        print(part, f"{part.stat().st_size / 2**20:.1f} MiB")


def unpack(given: argparse.Namespace) -> None:
    site = pathlib.Path(given.site)
    kept = site / ".parts"
    kept.mkdir(parents=True, exist_ok=True)
    missing = []
    for name in (given.engine, f"{given.engine}-thresher"):
        found = pathlib.Path(given.folder).glob(f"{name}.*-of-*")
        new = [one for one in found if not (kept / one.name).exists() or not filecmp.cmp(one, kept / one.name, shallow=False)]
        for part in new:
            shutil.copy(part, kept)
        parts = [*kept.glob(f"{name}.*-of-*")]
        count = int(parts[0].name.rpartition("-")[2]) if parts else 1
        wanted = [kept / f"{name}.{at}-of-{count}" for at in range(1, count + 1)]
        lacking = [one.name if parts else f"the parts of {name}" for one in wanted if not one.exists()]
        missing += lacking
        if new and not lacking:
            whole = b"".join(part.read_bytes() for part in wanted)
            subprocess.run(["tar", "-C", str(site), "--use-compress-program=xz -T0", "-xf", "-"], input=whole, check=True)
            # Two processes of an engine that compile all its modules one by one start half a minute later.
            subprocess.run([sys.executable, "-m", "compileall", "-q", "-q", "-j", "0", str(site)], check=False)
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
    making.add_argument("--torch", action="store_true")
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
