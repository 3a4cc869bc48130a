"""A tournament over the machines of a Ray cluster, one shard a task, merged where this script runs.

usage: python ray_tasks.py --shards 16 --seed 42 --gpus 1 --ledger all.sqlite -- origin decode --device gpu

Words behind -- go to `thresher tournament`; files in them have to lie on every machine, and so does `thresher`.
"""

import argparse
import pathlib
import subprocess
import tempfile


def hold_shard(number: int, shards: int, seed: int, words: list[str]) -> bytes:
    """Holds one shard; returns its ledger. Status 1 is a gate that failed, which is a result."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = pathlib.Path(folder, "ledger.sqlite")
        command = ["thresher", "tournament", *words, "--shard", f"{number}/{shards}", "--seed", str(seed), "--ledger", str(ledger)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode > 1:
            raise RuntimeError(f"shard {number}/{shards}: {done.stderr}")
        return ledger.read_bytes()


def merge(ledgers: list[bytes], into: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, f"shard-{number}.sqlite") for number in range(1, len(ledgers) + 1)]
        for file, ledger in zip(files, ledgers):
            file.write_bytes(ledger)
        subprocess.run(["thresher", "ledger", "merge", "--ledger", into, *map(str, files)], check=True)


def main() -> None:
    import ray

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cpus", type=int, default=1, help="a task, all of a machine's for a tournament on the CPU: tasks beside each other disturb each other's times")
    parser.add_argument("--gpus", type=int, default=0, help="a task")
    parser.add_argument("--ledger", required=True, help="that the shards are merged into")
    parser.add_argument("words", nargs="+", help="for `thresher tournament`")
    asked = parser.parse_args()

    ray.init()
    # A task that is tried again begins anew, on whichever machine: a shard is never split over two.
    task = ray.remote(num_cpus=asked.cpus, num_gpus=asked.gpus)(hold_shard)
    tasks = [task.remote(number, asked.shards, asked.seed, asked.words) for number in range(1, asked.shards + 1)]
    merge(ray.get(tasks), asked.ledger)


if __name__ == "__main__":
    main()
