#!/usr/bin/env python3
"""Plots what `bench_grouped_gemm experts rows` recorded: time against the number of experts of which eight have rows, and
against the rows of each of eight experts. Of each case the configuration with the least predicted time, which the planner takes.

  grouped_plot.py FIGURE.svg NAME=measurements/FILE.txt...        (wants matplotlib)
"""
import re
import sys

import matplotlib
import matplotlib.pyplot as plt

CASE = re.compile(r"8 of (\d+) experts, (\d+) rows each: .* bytes ([\d.]+) us, products ([\d.]+) us")
TIME = re.compile(r" +([\d.]+) us  least .* predicted +([\d.]+) ")


def read(path):
    """{(experts, rows of each): (the least possible, the time of what the planner takes)} in microseconds."""
    floors, predicted_and_measured = {}, {}
    key = None
    for line in open(path):
        if line[:1] not in " \n":
            case = CASE.match(line)
            key = (int(case[1]), int(case[2])) if case else None
            if case:
                floors[key] = max(float(case[3]), float(case[4]))
        elif key and (time := TIME.match(line)):
            predicted_and_measured.setdefault(key, []).append((float(time[2]), float(time[1])))
    return {key: (floors[key], min(times)[1]) for key, times in predicted_and_measured.items()}


def main():
    figure, (of_experts, of_rows) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name, path in (word.split("=", 1) for word in sys.argv[2:]):
        times = read(path)
        for axes, at, of in ((of_experts, 0, {k: v for k, v in times.items() if k[1] == 64}),
                             (of_rows, 1, {k: v for k, v in times.items() if k[0] == 8})):
            cases = sorted(of)
            line, = axes.plot([k[at] for k in cases], [of[k][1] for k in cases], "o-", markersize=3, label=name)
            axes.plot([k[at] for k in cases], [of[k][0] for k in cases], ":", color=line.get_color(),
                      label=name + ", least possible")
    of_experts.set(xscale="log", xlabel="experts, eight of them with 64 rows each", ylabel="microseconds", ylim=(0, None))
    of_experts.set_xticks([8, 16, 32, 64, 128, 256, 512, 1024], [8, 16, 32, 64, 128, 256, 512, 1024])
    of_rows.set(xlabel="rows of each of eight experts", ylim=(0, None))
    for axes in (of_experts, of_rows):
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
    matplotlib.rcParams["svg.hashsalt"] = "thresher"
    figure.savefig(sys.argv[1], metadata={"Date": None})


if __name__ == "__main__":
    main()
