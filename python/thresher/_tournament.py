"""Tournaments, held by the command `thresher` in this package: its gates, its ledger, its judge."""

import dataclasses
import html
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from . import _errors
from ._kernel_source import source_of
from ._library import refuse

_BASELINES = {"dual_gemm": "two_pass"}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_GATE_FAILED, _BAD_INPUT = 1, 2
_BEGUN = re.compile(r"run \d+ of ledger (.*), seed \d+")  # what the command says first
_MEMBERS_OF_KERNELS = ("entry", "framework", "formats", "workspace_bytes", "time_limit_s")

Path = str | os.PathLike


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contestant:
    """Who competes, and what is claimed of it.

    kernel: a function `kernel(a, b1, b2)` that gives back C, or `kernel(a, b1, b2, out)` that writes it; a .py file that holds
        one; or the name of a strategy of Thresher's own, "interleaved" or "attention/split". See docs/guides/python.md for what a
        kernel is given. On a GPU it may launch what can be captured in a CUDA graph: Triton's kernels, torch's operators.
    operation: what it computes, "dual_gemm" if it is left out; docs/reference/kernel-arguments.md has what a kernel of each is given.
    name: under which it is shown; of a function its own name, of a file the file's.
    entry: the function in a file.
    framework: whose arrays a kernel is given, "numpy" or "torch"; on a GPU "torch" alone.
    formats: what it is made for, as suites write it: ["fp16*fp16->fp16"]; every one without it.
    workspace_bytes: a number or an expression of the problem's extents: "m * n * 4".
    time_limit_s: seconds that one call may take, at most the tournament's call_seconds.
    baseline: the strategy that it is measured against; "two_pass" of the dual GEMM.
    speedup, confidence, reason: the claim: by how much it is faster, one number or two between which the speed-up is, with
        which probability, and why.

    Raises InvalidArgumentError with one sentence.
    """

    kernel: Callable | Path
    operation: str | None = None
    name: str | None = None
    entry: str | None = None
    framework: str | None = None
    formats: Sequence[str] | None = None
    workspace_bytes: int | str | None = None
    time_limit_s: float | None = None
    baseline: str | None = None
    speedup: float | tuple[float, float] = 1.0
    confidence: float = 0.0
    reason: str = "no claim was made"

    def __post_init__(self) -> None:
        if not callable(self.kernel) and not isinstance(self.kernel, (str, os.PathLike)):
            refuse(f"a contestant is {_shown(self.kernel)}, expected a function, a .py file, the name of a strategy, a .toml file or "
                   f"a Contestant")
        if self.name is not None and not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            refuse(f"the contestant's name is {self.name!r}, expected 1 to 64 of A-Z a-z 0-9 _ . -")
        given = next((one for one in _MEMBERS_OF_KERNELS if getattr(self, one) is not None), None)
        if given and self._is_strategy():
            refuse(f"{given} is given with the strategy {self.kernel}, expected it with a kernel of one's own alone")
        if self.framework not in (None, "numpy", "torch"):
            refuse(f"framework is {self.framework!r}, expected 'numpy' or 'torch'")
        if self.entry is not None and callable(self.kernel):
            refuse(f"entry is {self.entry!r}, expected it with a .py file alone: a function is its own")
        if not (_is_number(self.confidence) and 0 <= self.confidence <= 1):
            refuse(f"confidence is {self.confidence!r}, expected a number from 0 to 1")

    def _is_strategy(self) -> bool:
        return isinstance(self.kernel, str) and not self.kernel.endswith(".py")

    def _place(self) -> tuple[str, str]:
        """(operation, name)."""
        if self._is_strategy():
            operation, slash, strategy = str(self.kernel).rpartition("/")
            return operation if slash else self.operation or "dual_gemm", strategy
        name = getattr(self.kernel, "__name__", "") if callable(self.kernel) else pathlib.Path(self.kernel).stem
        return self.operation or "dual_gemm", self.name or name

    def write(self, folder: pathlib.Path, framework: str | None = None) -> pathlib.Path:
        """Its pitch in that folder, with its kernel, which is given arrays of `framework` where it does not say whose."""
        operation, name = self._place()
        if self._is_strategy() and self.name not in (None, name):
            refuse(f"the contestant's name is {self.name!r}, but it is the strategy {name}: leave the name out")
        baseline = self.baseline or _BASELINES.get(operation)
        if baseline is None:
            refuse(f"the contestant {operation}/{name} has no baseline: name the strategy that it is measured against")
        speedup = [float(one) for one in self.speedup] if isinstance(self.speedup, (tuple, list)) else float(self.speedup)
        lines = [f"title = {_toml(name)}", "[contestant]", f"operation = {_toml(operation)}", f"strategy = {_toml(name)}",
                 "[baseline]", f"strategy = {_toml(baseline)}", "[claim]", f"speedup = {_toml(speedup)}",
                 f"confidence = {_toml(float(self.confidence))}", f"reason = {_toml(self.reason)}", *self._kernel(folder, framework)]
        pitch = folder / "pitch.toml"
        pitch.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return pitch

    def _kernel(self, folder: pathlib.Path, framework: str | None) -> list[str]:
        if self._is_strategy():
            return []
        if callable(self.kernel):
            entry = getattr(self.kernel, "__name__", "")
            (folder / f"{entry}.py").write_text(source_of(self.kernel), encoding="utf-8")
            source = f"{entry}.py"
        else:
            file = pathlib.Path(os.path.abspath(self.kernel))
            entry, source = self.entry, file.name
            if entry is None:
                refuse(f"the kernel {file} has no entry: say which of its functions it is")
            if not file.is_file():
                refuse(f"the kernel {file} is no file that can be read")
            try:
                shutil.copyfile(file, folder / source)  # a pitch names files of its own folder alone
            except OSError as error:
                refuse(f"the kernel {file} cannot be read: {error.strerror}")
        given = {"source": source, "entry": entry, "framework": self.framework or framework,
                 "formats": None if self.formats is None else list(self.formats),
                 "workspace_bytes": None if self.workspace_bytes is None else str(self.workspace_bytes),
                 "time_limit_s": self.time_limit_s}
        return ["[kernel]", *(f"{key} = {_toml(value)}" for key, value in given.items() if value is not None)]


@dataclasses.dataclass(frozen=True)
class Entry:
    """What was found of one contestant on one suite."""

    suite: str
    contestant: str  # "dual_gemm/mine"
    baseline: str
    verdict: str  # "accepted", "rejected", "failed at correct", …: docs/harness/tournament.md has all
    sentence: str
    gates: dict[str, tuple[str, str]]  # by name: "passed", "failed", "not judged" or "skipped", and the gate's sentence
    times_us: dict[tuple[str, str], tuple[float, float, float]]  # by problem and mode: the median with its 95 % interval
    speedups: dict[tuple[str, str], tuple[float, float, float]]  # over the baseline, likewise
    predicted_us: dict[str, float | None]  # by problem, before anything was run; None: the planner has no table for it

    @property
    def failed(self) -> bool:
        return any(outcome == "failed" for outcome, _ in self.gates.values())


class Tournament:
    """What a tournament gave: a sequence of entries, in their order, which a notebook shows as a table.

    `found["mine"]` is the entry of that contestant, or of (suite, contestant) where several suites have one. `record` is all there
    is, as `thresher ledger export` has it; `run` is its number in `ledger`.
    """

    def __init__(self, record: dict[str, Any], ledger: str, standings: str):
        self.record = record
        self.ledger = ledger
        self.run: int = record["run"]
        self.seed: int = record["seed"]
        self.device: str = record["device"]
        self._standings = standings
        self.entries = [_entry(one, record["predictions"]) for one in record["entries"]]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, which: int | str | tuple[str, str]) -> Entry:
        if isinstance(which, int):
            return self.entries[which]
        suite, name = which if isinstance(which, tuple) else (None, which)
        found = [one for one in self.entries
                 if name in (one.contestant, one.contestant.partition("/")[2]) and suite in (None, one.suite)]
        if len(found) != 1:
            raise KeyError(f"{which!r} is the name of {len(found) or 'no'} entries, expected one of "
                           f"{', '.join(f'{one.suite}: {one.contestant}' for one in self.entries)}")
        return found[0]

    def __repr__(self) -> str:
        return self._standings

    def _repr_html_(self) -> str:
        """A table: a row a contestant, with the median time of each problem in the mode that decides, and the speed-up."""
        parts = []
        for suite in dict.fromkeys(one.suite for one in self.entries):
            entries = [one for one in self.entries if one.suite == suite]
            mode = next((mode for one in entries for _, mode in one.times_us), "")
            problems = list(dict.fromkeys(problem for one in entries for problem, of in one.times_us if of == mode))
            head = ["contestant", "verdict", *(f"{problem} ({mode}, µs)" for problem in problems), "why"]
            rows = [[one.contestant, one.verdict, *(_cell(one, (problem, mode)) for problem in problems), one.sentence]
                    for one in entries]
            parts.append(f"<table><caption>{html.escape(suite)}</caption>{_row('th', head)}{''.join(_row('td', row) for row in rows)}"
                         f"</table>")
        return "".join(parts)


def tournament(suite: Path | Sequence[Path], contestants: Sequence[Any] | None = None, *, device: str | None = None,
               device_table: str | None = None, seconds: float = 6.0, seed: int | None = None, ledger: Path | None = None,
               report: Path | None = None, progress: bool = False, match_seconds: float | None = None,
               call_seconds: float | None = None) -> Tournament:
    """Lets contestants compete on suites of problems, through the gates of docs/harness/tournament.md, and keeps what was found.

    suite: the name of a built-in suite ("origin", "decode", …), a TOML file, or several of them.
    contestants: functions, .py files (as a Contestant with its entry), names of strategies, pitches (.toml files) or
        `Contestant`s; all of Thresher's strategies without it. A kernel of one's own runs in a confined process of this
        Python, and is judged by another that believes nothing of what it says.
    device: "cpu", "cuda" or "cuda:1"; by default "cpu" where a function or a .py file competes, else the best there is. On a
        GPU functions and .py files are given torch's tensors in its memory.
    device_table: in place of a device a card of the planner's table, "B200", which need not be here: what needs no run is judged.
    seconds: for timing one contestant on one problem. seed: of inputs and order; random without it.
    ledger: the SQLite file that keeps every result; by default the user's. report: a folder for report.html.
    progress: says on sys.stderr what is being done.
    match_seconds: that a match may take in all; without it one with a kernel of one's own 10 minutes, one more for each trial
        and 20 times `seconds` for each problem. call_seconds: that a contestant's time_limit_s may be at most; 60 without it.

    Returns what was found; a gate that failed is no error. Raises InvalidArgumentError, with one sentence, for arguments, suites
    and pitches that cannot be used, DeviceError where the machine or Thresher itself failed.
    """
    suites = [suite] if isinstance(suite, (str, os.PathLike)) else list(suite)
    with tempfile.TemporaryDirectory(prefix="thresher-") as name:
        folder = pathlib.Path(name)
        pitches = _pitches(contestants, folder, on_gpu=isinstance(device, str) and device.startswith("cuda"))
        record = folder / "run.json"
        words = ["tournament", *map(os.fspath, suites), *(word for one in pitches for word in ("--pitch", str(one.path))),
                 *_device(device, device_table, any(one.is_python for one in pitches)), *_numbers(seconds, seed),
                 *_limit("match_seconds", match_seconds), *_limit("call_seconds", call_seconds), "--json", str(record)]
        for option, value in (("--ledger", ledger), ("--report", report)):
            if value is not None:
                words += [option, os.fspath(value)]
        standings, ledger_file = _run(words, progress)
        return Tournament(json.loads(record.read_text()), ledger_file, standings)


@dataclasses.dataclass(frozen=True)
class _Pitch:
    path: pathlib.Path
    is_python: bool  # a function or a .py file


def _pitches(contestants: Sequence[Any] | None, folder: pathlib.Path, on_gpu: bool) -> list[_Pitch]:
    if contestants is None:
        return []
    if isinstance(contestants, (str, os.PathLike)) or callable(contestants):
        refuse(f"contestants is {_shown(contestants)}, expected a list of them")
    all_of_them = list(contestants)
    if not all_of_them:
        refuse("nobody competes, expected at least one contestant, or None for all of Thresher's strategies")
    found, names = [], set()
    for number, one in enumerate(all_of_them):
        if isinstance(one, (str, os.PathLike)) and os.fspath(one).endswith(".toml"):
            found.append(_Pitch(pathlib.Path(os.path.abspath(one)), False))
            continue
        contestant = one if isinstance(one, Contestant) else Contestant(kernel=one)
        operation, name = contestant._place()
        if (operation, name) in names:
            refuse(f"two contestants have the name {name}, expected each to have its own: give one of them as a Contestant with a name")
        names.add((operation, name))
        if on_gpu and contestant.framework == "numpy":
            refuse(f"the contestant {name} has the framework 'numpy', expected 'torch' on a GPU: NumPy's arrays lie on the CPU")
        (folder / str(number)).mkdir()
        found.append(_Pitch(contestant.write(folder / str(number), "torch" if on_gpu else None), not contestant._is_strategy()))
    return found


def _device(device: str | None, table: str | None, is_python: bool) -> list[str]:
    if table is not None:
        if device is not None:
            refuse("device and device_table are both given, expected one of them")
        return ["--device-table", str(table)]
    if device is None:
        return ["--device", "cpu" if is_python else "best"]
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:[0-9]+)?", device):
        refuse(f"the device is {device!r}, expected 'cpu', 'cuda' or 'cuda:1'")
    return ["--device", "gpu" if device == "cuda" else device]


def _numbers(seconds: float, seed: int | None) -> list[str]:
    if not _is_number(seconds) or not seconds > 0:
        refuse(f"seconds is {seconds!r}, expected a number greater than 0")
    if seed is None:
        return ["--seconds", repr(float(seconds))]
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        refuse(f"seed is {seed!r}, expected a whole number from 0 up")
    return ["--seconds", repr(float(seconds)), "--seed", str(seed)]


def _limit(name: str, seconds: float | None) -> list[str]:
    if seconds is None:
        return []
    if not _is_number(seconds) or not seconds > 0:
        refuse(f"{name} is {seconds!r}, expected a number greater than 0")
    return [f"--{name.replace('_', '-')}", repr(float(seconds))]


def _run(words: list[str], progress: bool) -> tuple[str, str]:
    """What it prints, and the ledger that it says it writes to."""
    for word in words:
        _expect_word(word)
    program = pathlib.Path(__file__).parent / "bin" / "thresher"
    environment = {**os.environ, "THRESHER_PYTHON": sys.executable or ""}
    with tempfile.TemporaryFile("w+") as printed:
        try:
            process = subprocess.Popen([program, *words], stdout=printed, stderr=subprocess.PIPE, text=True, env=environment)
        except OSError as error:
            raise _errors.FileError(f"the program {program} cannot be run: {error.strerror}; install the package again") from None
        with process:
            last = ledger = ""
            try:
                for line in process.stderr:
                    last = line.strip() or last
                    begun = _BEGUN.fullmatch(last)
                    ledger = begun[1] if begun else ledger
                    if progress:
                        print(line, end="", file=sys.stderr)
            except BaseException:
                process.terminate()
                raise
        if process.returncode not in (0, _GATE_FAILED):
            _fail(process.returncode, last)
        printed.seek(0)
        return printed.read(), ledger


def _expect_word(word: str) -> None:
    """That a command can be given it whole."""
    try:
        is_whole = b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:
        is_whole = False
    if not is_whole:
        refuse(f"an argument is {word!r}, expected text that a command can be given")


def _fail(status: int, said: str) -> NoReturn:
    sentence = said.removeprefix("thresher: ") or f"the command ended with status {status}"
    raise (_errors.InvalidArgumentError if status == _BAD_INPUT else _errors.DeviceError)(sentence)


def _entry(one: dict[str, Any], predictions: list[dict[str, Any]]) -> Entry:
    def triples(key: str) -> dict:
        return {(m["problem"], m["mode"]): (m[key]["value"], m[key]["low"], m[key]["high"]) for m in one["measurements"] if key in m}

    return Entry(one["suite"], one["contestant"], one["baseline"], one["verdict_text"], one["sentence"],
                 {gate["gate"]: (gate["outcome"], gate["sentence"]) for gate in one["gates"]},
                 triples("contestant_us"), triples("speedup"),
                 {p["problem"]: p["predicted_us"] for p in predictions
                  if (p["suite"], p["contestant"]) == (one["suite"], one["contestant"])})


def _cell(entry: Entry, key: tuple[str, str]) -> str:
    if key not in entry.times_us:
        return ""
    speedup = f" ({entry.speedups[key][0]:.3g}×)" if key in entry.speedups and entry.contestant != entry.baseline else ""
    return f"{entry.times_us[key][0]:.4g}{speedup}"


def _row(kind: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{html.escape(cell)}</{kind}>' for cell in cells)}</tr>"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any) -> str:
    return repr(value) if value is None or isinstance(value, (str, int, float, bool)) else f"of the type {type(value).__name__}"


def _toml(value: Any) -> str:
    """Texts, numbers and lists of them; JSON's are TOML's too, but for a DEL, which JSON leaves as it is."""
    if isinstance(value, float) and not math.isfinite(value):
        refuse(f"a contestant's number is {value}, expected a finite one")
    if not isinstance(value, (str, int, float, list)) or isinstance(value, list) and not all(isinstance(v, (str, float)) for v in value):
        refuse(f"a contestant is told {value!r}, expected a text, a number or a list")
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse(f"a contestant is told {value!r}, expected text that UTF-8 has")
    return text
