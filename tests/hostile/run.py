#!/usr/bin/env python3
"""Runs the hostile inputs of this folder and prints how many were met as they should be.

usage: run.py THRESHER [--unlimited] [GROUP...]

Each .toml file is a group. Its first keys are what its cases share: `run`, the words behind `thresher`; `files`; and
`texts`, which files are made from. A [[case]] has a `name` and says what differs:

  run     words of a shell, or a list of arguments as they are
  files   what lies in the folder that the command runs in, by name (see `make`)
  env     environment variables; false: without it
  status  2 if left out; 0 where the input looks hostile and is none
  says    the sentence behind "thresher: ", or the first line of the output where the status is 0; "…" at its end stands
          for anything, of texts that differ from one machine or library to the next. SCRATCH stands for the folder.

A command is met as it should be when status and sentence are those, when it took less than 10 s, with the sentence alone
on standard error, without a control character, and with nothing printed or written unless its status is 0. Its memory is limited to
6 GiB of addresses (not with --unlimited, which sanitizers need), and what it takes to 300 MiB.
"""
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor

SECONDS = 10
MIB_OF_ADDRESSES = 6 * 1024
MIB_TAKEN = 300


def piece(recipe):
    """Bytes: a text, {hex}, {u64}, {zeros}, or {text, times}."""
    if isinstance(recipe, str):
        return recipe.encode()
    if "hex" in recipe:
        return bytes.fromhex(recipe["hex"])
    if "u64" in recipe:
        return struct.pack("<Q", int(recipe["u64"]))
    if "zeros" in recipe:
        return bytes(recipe["zeros"])
    return recipe["text"].encode() * recipe["times"]


def pieces(recipe):
    return b"".join(map(piece, recipe if isinstance(recipe, list) else [recipe]))


def make(path, recipe, texts):
    """A file of a piece or a list of them; {header, data, bytes}: safetensors, with so many zeros and then these pieces;
    {from, replace, append}: one of `texts`, changed; {link}, {hard_link}, {fifo}, {folder}; {size}: a file with a hole."""
    special = recipe if isinstance(recipe, dict) else {}
    if "link" in special:
        path.symlink_to(special["link"])
    elif "hard_link" in special:
        path.hardlink_to(path.parent / special["hard_link"])
    elif "fifo" in special:
        os.mkfifo(path)
    elif "folder" in special:
        path.mkdir()
    elif "size" in special:
        with path.open("wb") as file:
            file.truncate(special["size"])
    elif "header" in special:
        header = pieces(special["header"])
        body = bytes(special.get("data", 0)) + pieces(special.get("bytes", []))
        path.write_bytes(struct.pack("<Q", len(header)) + header + body)
    elif "from" in special:
        text = texts[special["from"]]
        for old, new in special.get("replace", []):
            assert old in text, f"{old} is not in {special['from']}"
            text = text.replace(old, new, 1)
        path.write_bytes(text.encode() + pieces(special.get("append", "")))
    else:
        path.write_bytes(pieces(recipe))


def listing(root):
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def obeyed(text):
    """Control characters that a terminal would obey."""
    return [char for char in text if (ord(char) < 32 and char not in "\n\t") or 0x7F <= ord(char) < 0xA0]


def faults(group, case, binary, is_limited):
    """What is not as it should be, one sentence each."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="thresher-hostile-"))
    try:
        folder = root / "in"
        folder.mkdir()
        for name, recipe in (group.get("files", {}) | case.get("files", {})).items():
            make(folder / name, recipe, group.get("texts", {}))
        (root / "home").mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "TMPDIR": str(root), "CUDA_VISIBLE_DEVICES": "",
               "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        env |= {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
        for name, value in case.get("env", {}).items():
            env.pop(name, None)
            if value is not False:
                env[name] = value
        words = case.get("run", group.get("run"))
        limit = f"ulimit -v {MIB_OF_ADDRESSES * 1024}; " if is_limited else ""
        # The shell puts its own words in front of what is no list.
        script = limit + ('exec "$0" "$@"' if isinstance(words, list) else f'exec "$0" {words}')
        arguments = ["/bin/sh", "-c", script, binary] + (words if isinstance(words, list) else [])
        before = listing(root)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen(arguments, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True)
            is_late = threading.Event()
            timer = threading.Timer(SECONDS, lambda: (is_late.set(), os.killpg(child.pid, signal.SIGKILL)))
            timer.start()
            _, status, usage = os.wait4(child.pid, 0)
            timer.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            out.seek(0)
            err.seek(0)
            said_out, said_err = (file.read().decode("utf-8", "backslashreplace") for file in (out, err))
        return list(judge(case, root, before, is_late.is_set(), child.returncode, usage, said_out, said_err, is_limited))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def judge(case, root, before, is_late, status, usage, out, err, is_limited):
    expected = case.get("status", 2)
    if is_late:
        yield f"it had not ended after {SECONDS} s"
        return
    if status != expected:
        yield f"its status is {status}, expected {expected}"
    said = out if expected == 0 else err
    said = said.replace(str(root), "SCRATCH")
    wanted = case["says"] if expected == 0 else "thresher: " + case["says"]
    if expected == 0:
        said = said.split("\n")[0] + "\n"
    if not (said.startswith(wanted[:-1]) if wanted.endswith("…") else said == wanted + "\n"):
        yield f"it says {said!r}, expected {wanted!r}"
    if expected == 2 and err.count("\n") != case.get("lines", 1):
        yield f"it takes {err.count(chr(10))} lines"
    if expected == 2 and out:
        yield f"it prints {out[:100]!r} before it refuses"
    if controls := obeyed(out + err):
        yield f"it prints {controls[:5]}"
    if is_limited and usage.ru_maxrss > MIB_TAKEN * 1024:
        yield f"it takes {usage.ru_maxrss // 1024} MiB"
    if expected != 0 and (written := sorted(listing(root) - before)):
        yield f"it leaves {written}"


def main(arguments):
    is_limited = "--unlimited" not in arguments
    binary, *wanted = [word for word in arguments if not word.startswith("--")]
    binary = str(pathlib.Path(binary).resolve())
    files = sorted(pathlib.Path(__file__).parent.glob("*.toml"))
    groups = [(file.stem, tomllib.loads(file.read_text())) for file in files if not wanted or file.stem in wanted]
    cases = [(name, group, case) for name, group in groups for case in group["case"]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda each: faults(each[1], each[2], binary, is_limited), cases))
    for name, group in groups:
        own = [fault for (group_name, _, _), fault in zip(cases, found) if group_name == name]
        print(f"{name:<14} {sum(not fault for fault in own):>4} of {len(own):>4}")
    for (name, _, case), sentences in zip(cases, found):
        for sentence in sentences:
            print(f"{name}: {case['name']}: {sentence}")
    refused = [not fault for (_, _, case), fault in zip(cases, found) if case.get("status", 2) != 0]
    taken = [not fault for (_, _, case), fault in zip(cases, found) if case.get("status", 2) == 0]
    print(f"{sum(refused)} of {len(refused)} hostile inputs were refused as they should be; "
          f"{sum(taken)} of {len(taken)} that only look hostile were taken as they should be")
    return 0 if all(refused) and all(taken) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
