"""The modules over processes, against those of one process, and how weights are dealt."""

import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of thresher.torch.distributed are left out")

import thresher  # noqa: E402
from thresher.torch import distributed as td  # noqa: E402

WORKER = pathlib.Path(__file__).with_name("distributed_worker.py")


@pytest.mark.parametrize("size", [4, pytest.param(2, marks=pytest.mark.on_demand)])
def test_spread_modules_are_the_whole_ones(tmp_path, size):
    """Four processes check themselves in pairs, too."""
    run_workers(tmp_path, size)


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason=f"NCCL between processes needs 2 GPUs, and this machine has {torch.cuda.device_count()}")
def test_spread_modules_on_two_gpus(tmp_path):
    run_workers(tmp_path, 2, "gpu")


def run_workers(tmp_path, size, *where):
    processes = [subprocess.Popen([sys.executable, WORKER, tmp_path / "meeting", str(rank), str(size), *where], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for rank in range(size)]
    try:
        said = [process.communicate(timeout=240)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for rank, process in enumerate(processes):
        assert process.returncode == 0, f"process {rank}: {said[rank][-3000:]}"


def test_shards_are_the_whole():
    matrix, stack = torch.randn(84, 16), torch.randn(5, 4, 16)
    for size in (1, 2, 3, 5):
        for whole, dim in ((matrix, 0), (matrix, 1) if size < 3 else (matrix, 0), (stack, 0)):
            parts = [td.shard(whole, rank=rank, size=size, dim=dim) for rank in range(size)]
            assert torch.equal(torch.cat(parts, dim), whole) and all(part.numel() for part in parts)
    assert [len(td.shard(matrix, rank=rank, size=3)) for rank in range(3)] == [24, 32, 28]


def test_shards_of_scaled_weights():
    values = torch.arange(300 * 64, dtype=torch.int64).remainder(256).to(torch.uint8).reshape(300, 64)
    blocked = thresher.Nvfp4(values, torch.arange(3 * 2 * 512).remainder(251).to(torch.uint8), torch.tensor([2.0]), scale_layout="blocked")
    parts = [td.shard(blocked, rank=rank, size=3) for rank in range(3)]
    assert [len(part.values) for part in parts] == [128, 128, 44] and all(part.scales.numel() == 1024 for part in parts)
    assert torch.equal(torch.cat([part.scales for part in parts]), blocked.scales)
    assert all(part.scale_layout == "blocked" and part.global_scale is blocked.global_scale for part in parts)
    in_blocks = thresher.Fp8(values, torch.arange(3.0).reshape(3, 1), per="block")
    assert [td.shard(in_blocks, rank=rank, size=2).scales.tolist() for rank in range(2)] == [[[0.0]], [[1.0], [2.0]]]
    stack = thresher.Nvfp4(values.reshape(3, 100, 64), torch.zeros(3, 100, 8, dtype=torch.uint8), torch.tensor([1.0, 2.0, 3.0]))
    last = td.shard(stack, rank=1, size=2)
    assert last.global_scale.tolist() == [2.0, 3.0] and torch.equal(last.values, stack.values[1:])
    in_bytes = thresher.Nvfp4(stack.values, torch.arange(3 * 1024).remainder(251).to(torch.uint8), None, scale_layout="blocked")
    assert torch.equal(td.shard(in_bytes, rank=0, size=3).scales.reshape(-1), in_bytes.scales[:1024])


def test_a_checkpoint_on_disk_is_cut(tmp_path):
    torch.save({"gate": torch.randn(64, 16)}, tmp_path / "weights.pt")
    whole = torch.load(tmp_path / "weights.pt", mmap=True, weights_only=True)["gate"]
    part = td.shard(whole, rank=1, size=2)
    assert part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr() and torch.equal(part, whole[32:])


@pytest.mark.parametrize("call, sentence", [
    (lambda: td.shard(torch.zeros(16, 8), rank=2, size=2), "rank is 2 and size 2, expected 0 <= rank < size"),
    (lambda: td.shard(torch.zeros(16, 8), rank=0, size=3), "16 rows are to be dealt among 3 processes, 8 together"),
    (lambda: td.shard(torch.zeros(16), rank=0, size=1), "a weight is [16] and dim 0"),
    (lambda: td.shard(torch.zeros(2, 16, 8), rank=0, size=2, dim=1), "a weight is [2, 16, 8] and dim 1"),
    (lambda: td.shard(None, rank=0, size=1), "a weight is of the type NoneType"),
    (lambda: td.GatedMLP(torch.zeros(8, 8), torch.zeros(8, 8), torch.zeros(8, 8)), "torch.distributed is not initialised"),
    (lambda: td.MoE.from_float([]), "torch.distributed is not initialised"),
])
def test_refused(call, sentence):
    with pytest.raises(thresher.InvalidArgumentError) as refused:
        call()
    assert sentence in str(refused.value)
