"""One of the processes of test_distributed.py: usage: distributed_worker.py FILE RANK SIZE [gpu]. Ends with 0 when all held.

On GPUs, one a process, over NCCL: with wider layers, and held to what other tiles' sums allow."""

import sys

import torch
import torch.distributed as dist

import thresher
import thresher.torch as tt
from thresher.torch import distributed as td

rank, size, on_gpu = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["gpu"]
torch.set_num_threads(1)
if on_gpu:
    torch.cuda.set_device(rank)
    torch.set_default_device(f"cuda:{rank}")
wide = 8 if on_gpu else 1
dist.init_process_group("nccl" if on_gpu else "gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)


class Recorded:
    """A weight in a file, as safetensors cuts it, which says how much of it was read."""

    def __init__(self, weight):
        self.weight, self.read = weight, 0

    def get_shape(self):
        return list(self.weight.shape)

    def __getitem__(self, which):
        part = self.weight[which]
        self.read += part.numel()
        return part


def normal(*shape):
    return torch.randn(*shape).bfloat16() / 8


def close(result, expected):
    """As sums of parts that were rounded each are."""
    torch.testing.assert_close(result, expected, rtol=2**-6, atol=2**-6 * expected.abs().max().item())


def same(result, expected):
    """Of rows with the same bits, whose float32 sums may round their last bit in another way; a GPU's tiles depend on how many rows
    there are, so rows have not the same bits there."""
    assert result.dtype == expected.dtype
    if on_gpu:
        close(result, expected)
        return
    step = 2**-8 if result.dtype == torch.bfloat16 else 2**-22
    torch.testing.assert_close(result, expected, rtol=step, atol=2**-22 * expected.abs().max().item())


def check_gated_mlp(group):
    n, k = 80 * wide, 32 * wide
    gate, up, down = normal(n, k), normal(n, k), normal(k, n)
    x = normal(2, 5, k)
    whole = tt.GatedMLP(gate, up, down)
    weights = [Recorded(one) for one in (gate, up, down)]
    part = td.GatedMLP.sharded(*weights, group=group)
    assert part(x).shape == (2, 5, k) and part(x).dtype == x.dtype
    close(part(x), whole(x))
    assert all(one.read < one.weight.numel() * 0.7 for one in weights)
    read = torch.tensor([one.read for one in weights])
    dist.all_reduce(read, group=group)
    assert read.tolist() == [one.weight.numel() for one in weights]
    most = part(x)
    dist.all_reduce(most, dist.ReduceOp.MAX, group=group)
    assert torch.equal(most, part(x)), "not the same in every process"
    copy = td.GatedMLP(torch.zeros_like(gate[: part.n]), torch.zeros_like(gate[: part.n]), torch.zeros_like(down[:, : part.n]), group=group)
    copy.load_state_dict(part.state_dict())
    assert torch.equal(copy(x), part(x))


def check_low_precision(group):
    x, down = normal(6, 128), normal(128, 512)

    def fp8(per, shape):
        return thresher.Fp8(torch.randint(0, 100, (512, 128), dtype=torch.uint8), torch.rand(shape) / 64, per=per)

    def nvfp4():
        return thresher.Nvfp4(torch.randint(0, 256, (512, 64), dtype=torch.uint8), torch.randint(24, 40, (512, 8), dtype=torch.uint8),
                              torch.tensor([0.5]))

    of_fp8 = [lambda: fp8("tensor", (1,)), lambda: fp8("row", (512,)), lambda: fp8("block", (4, 1))]
    for make in [nvfp4, *([] if on_gpu else of_fp8)]:  # FP8 weights take tokens in 16 bits on the CPU alone
        gate, up = make(), make()
        close(td.GatedMLP.sharded(gate, up, down, group=group)(x), tt.GatedMLP(gate, up, down)(x))


def check_moe(group, ranks, place):
    experts, choices, n, k = 7, 3, 24 * wide, 32 * wide
    gate_up, down = normal(experts, 2 * n, k), normal(experts, k, n)
    whole = tt.MoE(gate_up, down, order="up_first")
    weights = Recorded(gate_up), Recorded(down)
    part = td.MoE.sharded(*weights, order="up_first", group=group)
    assert part.all_experts == experts and weights[0].read == part.experts * 2 * n * k
    for tokens_of in ([5, 2, 9, 1], [0, 4, 0, 3], [0, 0, 0, 0]):
        everybody = [(normal(count, k), torch.randint(-1, experts + 1, (count, choices)), torch.rand(count, choices))
                     for count in tokens_of[: len(ranks)]]
        result = part(*everybody[place])
        if result.numel() > 0:
            same(result, whole(*everybody[place]))
    x, weight = normal(4, k), torch.rand(4, choices)
    nobody = torch.tensor([[-1, experts, 2**40]] * 4)
    assert (part(x, nobody, weight) == 0).all()
    one_expert = torch.full((4, choices), experts - 1)
    same(part(x, one_expert, weight), whole(x, one_expert, weight))
    if on_gpu:
        return
    stacked = thresher.Fp8(torch.randint(0, 100, (experts, 2 * n, k), dtype=torch.uint8), torch.rand(experts, 2 * n) / 64, per="row")
    of_fp8 = td.MoE.sharded(stacked, down, order="up_first", group=group)
    same(of_fp8(x, one_expert, weight), tt.MoE(stacked, down, order="up_first")(x, one_expert, weight))


def check_from_float(group):
    class FloatMLP(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w1, self.w3 = (torch.nn.Linear(16 * wide, 40 * wide, bias=False) for _ in range(2))
            self.w2 = torch.nn.Linear(40 * wide, 16 * wide, bias=False)

    experts = [FloatMLP() for _ in range(5)]
    x, ids, weights = torch.randn(6, 16 * wide), torch.randint(0, 5, (6, 2)), torch.rand(6, 2)
    close(td.GatedMLP.from_float(experts[0], activation="silu", group=group)(x), tt.GatedMLP.from_float(experts[0], activation="silu")(x))
    moe = td.MoE.from_float(experts, activation="silu", group=group)
    same(moe(x, ids, weights), tt.MoE.from_float(experts, activation="silu")(x, ids, weights))
    tt.warm(moe, 3, choices=2)
    same(moe(x, ids, weights), tt.MoE.from_float(experts, activation="silu")(x, ids, weights))


def check_experts_in_one_module(group):
    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_up_proj, self.gate_up_proj_bias = normal(5, 2 * 24 * wide, 32 * wide), torch.randn(5, 2 * 24 * wide)
            self.down_proj, self.down_proj_bias = normal(5, 32 * wide, 24 * wide), torch.randn(5, 32 * wide)
            self.act_fn, self.is_concatenated = torch.nn.SiLU(), True

    experts = Experts()
    x, ids, weights = normal(6, 32 * wide), torch.randint(0, 5, (6, 2)), torch.rand(6, 2)
    expected = tt.MoE.from_float(experts)(x, ids, weights)
    same(td.MoE.from_float(experts, group=group)(x, ids, weights), expected)
    same(td.MoE.sharded(experts.gate_up_proj, experts.down_proj, order="gate_first", bias1=experts.gate_up_proj_bias,
                        down_bias=experts.down_proj_bias, group=group)(x, ids, weights), expected)


def check_refused(group):
    def refused(call, sentence):
        try:
            call()
        except thresher.InvalidArgumentError as error:
            assert sentence in str(error), error
        else:
            raise AssertionError(f"not refused: {sentence}")

    few = normal(1, 2 * 24, 32)
    refused(lambda: td.MoE.sharded(few, normal(1, 32, 24), order="up_first", group=group), "1 experts are to be dealt among")
    moe = td.MoE.sharded(normal(7, 2 * 24, 32), normal(7, 32, 24), order="up_first", group=group)
    refused(lambda: moe(normal(2, 32), torch.rand(2, 1), torch.zeros(2, 1, dtype=torch.int64)), "topk_ids is float32, expected integers")
    refused(lambda: td.GatedMLP.sharded(normal(8, 16), normal(8, 16), normal(16, 8), group=group), "8 rows are to be dealt among")
    refused(lambda: td.GatedMLP.sharded(normal(32, 16), normal(32, 16), normal(16, 48), group=group), "expected [N, K], the same, and [K, N]")


def check_all(group, ranks):
    place = ranks.index(rank)
    torch.manual_seed(20261123)
    check_gated_mlp(group)
    check_low_precision(group)
    check_moe(group, ranks, place)
    check_from_float(group)
    check_experts_in_one_module(group)
    check_refused(group)


with torch.inference_mode():
    check_all(None, list(range(size)))
    if size > 2:
        pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
        check_all(pairs[rank // 2], [rank // 2 * 2, rank // 2 * 2 + 1])
dist.destroy_process_group()
