"""The operations in float64, and how far a float32 computation that is rounded once may be from them."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def activated(kind, g, u, alpha=1.702, limit=7.0, up_offset=1.0):
    if kind == "silu":
        return g * sigmoid(g) * u
    if kind == "gelu_tanh":
        return 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3))) * u
    if kind == "relu2":
        return np.maximum(u, 0) ** 2
    if kind == "situ":
        beta, bound = (4.0, 25.0) if (alpha, limit) == (1.702, 7.0) else (alpha, limit)
        return beta * np.tanh(g / beta) * sigmoid(g) * bound * np.tanh(u / bound)
    g, u = np.minimum(g, limit), np.clip(u, -limit, limit)
    return g * sigmoid(alpha * g) * (u + up_offset)


def rounding(dtype):
    """Half of the relative distance of neighbours, and half of the smallest distance."""
    return {"float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 2.0**-134), "float32": (2.0**-24, 2.0**-150)}[np.dtype(dtype).name]


def product(a, b, bias=None):
    """(a·bᵀ + bias, a bound of what float32 sums of it are away)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    exact, magnitudes = a @ b.T, np.abs(a) @ np.abs(b).T
    if bias is not None:
        bias = np.asarray(bias, np.float64)
        exact, magnitudes = exact + bias, magnitudes + np.abs(bias)
    return exact, (a.shape[-1] + 2) * 2.0**-24 * magnitudes


def dual_gemm(a, b1, b2, kind="silu", bias1=None, bias2=None, **constants):
    """(the definition, a bound of the error before it is rounded). No activation's slope exceeds 1.2."""
    (g, g_error), (u, u_error) = product(a, b1, bias1), product(a, b2, bias2)
    exact = activated(kind, g, u, **constants)
    reach = np.abs(u) + u_error + abs(constants.get("up_offset", 1.0))
    return exact, 1.2 * g_error * reach + np.abs(g) * u_error + 2.0**-20 * np.abs(exact)


def check(result, exact, error):
    """Rounded once, and no further away."""
    relative, absolute = rounding(result.dtype)
    allowed = error + relative * (np.abs(exact) + error) * 1.01 + absolute
    away = np.abs(np.asarray(result, np.float64) - exact)
    worst = np.unravel_index(np.argmax(away - allowed), away.shape) if away.size else None
    assert worst is None or away[worst] <= allowed[worst], (worst, result[worst], exact[worst], away[worst], allowed[worst])


def attention(q, k, v, causal=False, scale=None, softcap=0.0, window=(-1, -1), sink=-np.inf):
    """(result, its error, logarithm of the sum of exponentials, its error) of one head: q [Sq, D], k and v [Sk, D]."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    logits, error = product(q, k)
    logits, error = logits * scale, np.abs(error * scale) + 2.0**-22 * np.abs(logits * scale)
    if softcap:
        logits = softcap * np.tanh(logits / softcap)
    rows, columns = np.indices(logits.shape)
    shift = logits.shape[1] - logits.shape[0]
    visible = np.ones(logits.shape, bool)
    if causal:
        visible &= columns <= rows + shift
    left, right = window
    if left >= 0:
        visible &= columns >= rows + shift - left
    if right >= 0:
        visible &= columns <= rows + shift + right
    logits = np.where(visible, logits, -np.inf)
    with np.errstate(all="ignore"):
        top = np.where(visible.any(1), logits.max(1, initial=-np.inf), 0)
        top = np.maximum(top, sink) if sink > -np.inf else top
        weights = np.exp(logits - top[:, None])
        total = weights.sum(1) + np.exp(sink - top)
        lse = np.where(total > 0, top + np.log(total), -np.inf)
        weights = np.where(total[:, None] > 0, weights / total[:, None], 0)
    slack = np.where(visible, error, 0).max(initial=0) + (k.shape[0] + 8) * 2.0**-23
    return weights @ v, 2.2 * slack * np.abs(v).max(initial=0), lse, 2 * slack * (1 + np.abs(np.where(total > 0, lse, 0)))


def turned(rows, positions, pairs="halves", rotary_dim=0, theta=10000.0, table=None):
    """(rows [T, H, D] turned by their positions, a bound of the error before they are rounded). table: [positions, rotary_dim], cosines and sines."""
    rows, columns = np.asarray(rows, np.float64), rotary_dim or rows.shape[-1]
    half = columns // 2
    x, y = {"halves": (np.arange(half), half + np.arange(half)), "interleaved": (2 * np.arange(half), 2 * np.arange(half) + 1),
            "none": (slice(0), slice(0))}[pairs]
    exact, magnitude = rows.copy(), np.zeros_like(rows)
    if pairs != "none":
        angles = np.asarray(positions, np.float64)[:, None] * np.float64(theta) ** (-np.arange(half) / half)
        cos, sin = (np.cos(angles), np.sin(angles)) if table is None else np.split(np.asarray(table, np.float64)[positions], 2, 1)
        cos, sin = cos[:, None], sin[:, None]
        exact[..., x], exact[..., y] = rows[..., x] * cos - rows[..., y] * sin, rows[..., x] * sin + rows[..., y] * cos
        magnitude[..., x] = magnitude[..., y] = np.abs(rows[..., x]) + np.abs(rows[..., y])
    return exact, 4 * 2.0**-24 * magnitude


def check_fp8(codes, descale, exact, error):
    """e4m3 of exact / descale, which is limited to ±448, rounded once and no further away."""
    wanted = np.clip(exact / descale, -448, 448)
    away = np.abs(e4m3(codes) - wanted)
    assert (away <= 1.01 * (error / descale + 2.0**-4 * np.abs(wanted) + 2.0**-10)).all()


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def e4m3(codes):
    codes = codes.astype(np.int64)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    magnitude = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    return np.where(codes & 128, -magnitude, magnitude)


def nvfp4(values, scales, global_scale=1.0):
    """[..., K] from uint8 [..., K/2] and row-major e4m3 scales [..., K/16]."""
    elements = np.stack([E2M1[values & 15], E2M1[values >> 4]], -1).reshape(*values.shape[:-1], -1)
    return elements * np.repeat(e4m3(scales), 16, -1) * global_scale
