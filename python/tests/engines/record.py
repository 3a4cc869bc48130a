"""Writes routing.json: the lists of experts' ids, weights and maps as a router and a dispatcher hand them to a kernel; and batches.json:
the lists of sequences, pages and slots as a scheduler hands them to attention.

usage: python record.py    (numpy alone; every case from its seed)

Of each case of routing.json
    experts, local     of all processes, and of this one
    choices            k
    topk_ids           [T, k] ids of all experts, int32; −1 where a token of a padded batch has none. vLLM hands these over
    expert_map         [experts] the place in this process or −1, int32, as vLLM has it beside them; null where one process has all
    local_ids          [T, k] the places, −1 for experts of others: what SGLang's dispatcher makes of the ids
    topk_weights       [T, k] float32

Of each case of batches.json, named as vLLM does
    pages, page_size   of the pool
    num_actual_tokens  rows of the queries; of a batch padded for a graph more than the sequences have
    query_start_loc    [B + 1] where each sequence's queries begin, int32
    seq_lens           [B] its keys, those of the queries at the end among them, int32; 0 of sequences that pad a batch
    block_table        [B, most] its pages, int32; behind those that it has, what an earlier sequence left there
    slot_mapping       [T] page · page_size + row where the key of each query goes, int64; −1 of tokens of nobody
    context_slots      [C] the same of all keys that came before, one sequence behind the other
"""

import json
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("routing.json")
BATCHES = pathlib.Path(__file__).with_name("batches.json")


def placed(experts: int, rank: int, size: int, in_turn: bool) -> np.ndarray:
    """Experts dealt to `size` processes, one behind the other or in turn: the map of process `rank`."""
    here = np.arange(rank, experts, size) if in_turn else np.array_split(np.arange(experts), size)[rank]
    found = np.full(experts, -1)
    found[here] = np.arange(len(here))
    return found


def case(name: str, seed: int, tokens: int, choices: int, experts: int, *, hot: int | None = None, padded: int = 0,
         expert_map: np.ndarray | None = None, of: np.ndarray | None = None) -> dict:
    """hot: every token's first choice; padded: so many tokens at the end have no expert; of: the experts that are chosen from."""
    random = np.random.default_rng(seed)
    among = np.arange(experts) if of is None else of
    ids = np.array([random.permutation(among)[:choices] for _ in range(tokens)]).reshape(tokens, choices)
    if hot is not None:
        ids = np.array([[hot, *(one for one in row if one != hot)][:choices] for row in ids.tolist()]).reshape(tokens, choices)
    ids[tokens - padded:] = -1
    logits = np.exp(random.standard_normal((tokens, choices)))
    weights = np.round(logits / logits.sum(1, keepdims=True), 4)
    local_ids = ids if expert_map is None else np.where(ids < 0, -1, expert_map[ids])
    return dict(name=name, choices=choices, experts=experts, local=experts if expert_map is None else int((expert_map >= 0).sum()),
                topk_ids=ids.tolist(), expert_map=None if expert_map is None else expert_map.tolist(), local_ids=local_ids.tolist(),
                topk_weights=weights.tolist())


def cases() -> list[dict]:
    linear, in_turn = placed(8, 1, 2, False), placed(8, 0, 2, True)
    return [
        case("one token", 1, 1, 2, 4),
        case("a usual batch", 2, 9, 2, 8),
        case("one choice", 3, 6, 1, 4),
        case("every token to one expert first", 4, 8, 3, 6, hot=4),
        case("no tokens", 5, 0, 2, 4),
        case("a padded batch", 6, 8, 2, 4, padded=3),
        case("experts of two processes", 7, 9, 2, 8, expert_map=linear),
        case("experts dealt in turn, a padded batch", 8, 7, 3, 8, padded=2, expert_map=in_turn),
        case("every expert elsewhere", 9, 5, 2, 8, expert_map=linear, of=np.arange(4)),
    ]


def batch(name: str, seed: int, page_size: int, queries: list[int], keys: list[int], *, padding: int = 0, shared: int = 0) -> dict:
    """queries, keys: of each sequence. padding: so many sequences and tokens of nobody at the end; shared: so many pages at the
    beginning of all sequences are the same."""
    random = np.random.default_rng(seed)
    counts = [-(-length // page_size) for length in keys]
    order = random.permutation(np.arange(1, sum(counts) + 4))  # vLLM gives page 0 to those that pad a batch
    table = random.choice(order, (len(keys) + padding, max(counts) + 2))
    table[len(keys):] = 0
    for at, count in enumerate(counts):
        own, order = order[:count], order[count:]
        table[at, :count] = own
        table[at, :shared] = table[0, :shared]
    slots = [table[at, np.arange(length) // page_size] * page_size + np.arange(length) % page_size for at, length in enumerate(keys)]
    new = [one[len(one) - count:] for one, count in zip(slots, queries)]
    context = [one[:len(one) - count] for one, count in zip(slots, queries)]
    return dict(name=name, pages=sum(counts) + 4, page_size=page_size, num_actual_tokens=sum(queries) + padding,
                query_start_loc=np.cumsum([0, *queries, *[0] * padding]).tolist(), seq_lens=[*keys, *[0] * padding],
                block_table=table.tolist(), slot_mapping=[*np.concatenate(new).tolist(), *[-1] * padding],
                context_slots=np.concatenate(context).tolist())


def batches() -> list[dict]:
    return [
        batch("decode", 21, 16, [1, 1, 1, 1], [1, 16, 17, 53]),
        batch("prefill", 22, 16, [16, 5, 33], [16, 5, 33]),
        batch("a chunk of a prefill, decode and drafts", 23, 16, [19, 1, 3, 1], [51, 40, 33, 2]),
        batch("decode padded for a graph", 24, 16, [1, 1, 1], [7, 32, 20], padding=5),
        batch("drafts behind a prefix that is shared", 25, 32, [3, 3], [70, 80], shared=2),
        batch("one token", 26, 48, [1], [100]),
    ]


def text(cases: list[dict]) -> str:
    return "[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n"


if __name__ == "__main__":
    FILE.write_text(text(cases()))
    BATCHES.write_text(text(batches()))
