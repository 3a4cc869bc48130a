#!/usr/bin/env python3
"""Plants the faults of tests/mutants in a copy of the tree (scripts/mutants.sh calls it).

usage: plant_faults.py TREE all         every fault behind a switch: THRESHER_MUTANT=n in the environment turns on number n
       plant_faults.py TREE NUMBER      that fault alone, as it is written
Prints a line for each planted fault: number, programs that are to find it (target:tests), what is said of a fault that is not found
("" where it must be), and the fault, with tabs between.
"""
import pathlib
import sys
import tomllib

switch = """#ifndef THRESHER_MUTANT_SWITCH
#define THRESHER_MUTANT_SWITCH
#ifdef __CUDACC__
constexpr bool thresher_mutant(int) {{ return false; }}
#else
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#include <cstdlib>
#include <type_traits>
inline const int thresher_mutant_on = [] {{
  const char* number = std::getenv("THRESHER_MUTANT");
  return number == nullptr ? 0 : std::atoi(number);
}}();
// What the compiler evaluates is as it should be: only what runs can be switched.
inline constexpr bool thresher_mutant(int number) {{
  return !std::is_constant_evaluated() && thresher_mutant_on == number;
}}
#endif
#endif
#line 1 "{path}"
"""


def read_faults(tree):
    faults = []
    for path in sorted((tree / "tests/mutants").glob("*.toml")):
        if path.name != "programs.toml":
            faults += tomllib.loads(path.read_text())["fault"]
    return faults


def edits_of(fault):
    """(file, begin, end, replacement) of each place that the fault changes."""
    return [fault] + [{"file": fault["file"], **edit} for edit in fault.get("also", [])]


def find(text, edit):
    start = 0
    if "from" in edit:
        start = text.index(edit["from"]) + len(edit["from"])
    before = edit["before"].strip()
    begin = text.index(before, start)
    if "from" not in edit and text.find(before, begin + 1) >= 0:
        raise ValueError(f"{edit['file']} has {before!r} more than once")
    return begin, begin + len(before)


def behind_switches(text, begin, end, variants):
    """The text between begin and end, or one of the variants (number, text)."""
    before = text[begin:end]
    if ";" in before:  # statements, else an expression
        code = "".join(f"if (thresher_mutant({number})) {{ {after} }} else " for number, after in variants)
        return code + "{ " + before + "\n}"
    code = "".join(f"thresher_mutant({number}) ? ({after}) : " for number, after in variants)
    return f"({code}({before}))"


def plant_all(tree, faults):
    places = {}  # (file, begin, end): variants
    for number, fault in enumerate(faults, 1):
        for edit in edits_of(fault):
            text = (tree / edit["file"]).read_text()
            begin, end = find(text, edit)
            places.setdefault(edit["file"], {}).setdefault((begin, end), []).append((number, edit["after"].strip()))
    for file, changed in places.items():
        text = (tree / file).read_text()
        last = len(text)
        for (begin, end), variants in sorted(changed.items(), reverse=True):
            if end > last:
                raise ValueError(f"{file}: faults {variants} overlap others")
            text = text[:begin] + behind_switches(text, begin, end, variants) + text[end:]
            last = begin
        (tree / file).write_text(switch.format(path=file) + text)


def plant_one(tree, fault):
    for edit in edits_of(fault):
        path = tree / edit["file"]
        text = path.read_text()
        begin, end = find(text, edit)
        path.write_text(text[:begin] + edit["after"].strip() + text[end:])


def main():
    tree = pathlib.Path(sys.argv[1])
    programs = tomllib.loads((tree / "tests/mutants/programs.toml").read_text())
    faults = read_faults(tree)
    if sys.argv[2] == "all":
        plant_all(tree, faults)
        chosen = range(1, len(faults) + 1)
    else:
        chosen = [int(sys.argv[2])]
        plant_one(tree, faults[chosen[0] - 1])
    for number in chosen:
        fault = faults[number - 1]
        found_by = " ".join(f"{programs[name]['target']}:{programs[name]['tests']}" for name in fault["found_by"])
        excuse = ("equivalent: " + fault["equivalent"]) if "equivalent" in fault else fault.get("survives", "")
        print(number, found_by, excuse, f"{fault['file']}: {fault['what']}", sep="\t")


main()
