"""Operands as the C interface takes them: a pointer, and what was checked about what lies there."""

from typing import Any, NamedTuple

from ._library import BF16, FP8_BLOCK, FP8_E4M3, FP8_ROW, FP8_TENSOR, FP16, FP32, INT32, NVFP4, UINT8, refuse

FORMAT_NAMES = {
    FP32: "float32",
    FP16: "float16",
    BF16: "bfloat16",
    FP8_E4M3: "float8_e4m3fn",
    NVFP4: "nvfp4",
    INT32: "int32",
    UINT8: "uint8",
    FP8_TENSOR: "fp8_tensor",
    FP8_ROW: "fp8_row",
    FP8_BLOCK: "fp8_block",
}
INT64 = -2  # which no operand of the C interface is: of numbers that it takes by their bits
FORMAT_NAMES |= {INT64: "int64"}
FORMATS = {name: format for format, name in FORMAT_NAMES.items() if format <= UINT8 and format != NVFP4}
SCALED = (NVFP4, FP8_TENSOR, FP8_ROW, FP8_BLOCK)
SCALE_LAYOUTS = {"row_major": 0, "blocked": 1}
FP8_FORMATS = {"tensor": FP8_TENSOR, "row": FP8_ROW, "block": FP8_BLOCK}


TOKENS = ("a", "x")  # the arguments whose rows are tokens; all others with scales are weights


class Operand(NamedTuple):
    """A tensor, borrowed for a call. Strides count elements. NVFP4 has the shape and strides of its elements."""

    name: str
    pointer: int
    format: int | str  # a type that the C interface has not is its name, which `expect_format` refuses
    shape: tuple
    strides: tuple
    device: tuple  # kind and ordinal
    scales: Any = None  # pointer
    global_scale: Any = None  # pointer
    scale_layout: int = 0


def is_contiguous(operand: Operand) -> bool:
    if 0 in operand.shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(operand.shape), reversed(operand.strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def elements(shape: tuple) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def with_elements(operand: Operand | None) -> Operand | None:
    """None for what has no elements, and so no memory, which the C interface takes for what is not given."""
    return None if operand is None or 0 in operand.shape else operand


def format_of(dtype: str) -> int | str:
    """The format of arrays whose type has this name, which is what it is called where there is none."""
    return FORMATS.get(dtype, dtype)


def format_of_array(array: Any) -> int | str:
    """That of an array with NumPy's attributes. One with a mask has none, since nobody would look at it."""
    dtype = array.dtype
    if hasattr(array, "mask"):
        return f"masked {dtype.name}"
    return format_of(dtype.name) if getattr(dtype, "isnative", True) else f"{dtype.name} in another byte order than this machine's"


def expect_format(operand: Operand, *formats: int | str) -> None:
    if operand.format not in formats:
        refuse(f"{operand.name} is {_format_name(operand.format)}, expected {_one_of(formats)}")


def _format_name(format: int | str) -> str:
    return format if isinstance(format, str) else FORMAT_NAMES[format]


def _one_of(formats: tuple) -> str:
    if set(SCALED) <= set(formats):
        names = [_format_name(one) for one in formats if one not in SCALED] + ["Nvfp4", "Fp8"]
    else:
        names = [_format_name(one) for one in formats]
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def expect_rank(operand: Operand, rank: int, shape: str) -> None:
    if len(operand.shape) != rank:
        refuse(f"{operand.name} has {len(operand.shape)} dimensions, expected {rank}: {shape}")


def expect_shape(operand: Operand, shape: tuple, why: str) -> None:
    if operand.shape != shape:
        refuse(f"{operand.name} has the shape {list(operand.shape)}, expected {list(shape)}: {why}")


def expect_contiguous(operand: Operand) -> None:
    if not is_contiguous(operand):
        refuse(f"{operand.name} is not contiguous: its strides are {list(operand.strides)}")


def expect_same_device(first: Operand, *others: Operand | None) -> None:
    for other in others:
        if other is not None and other.device != first.device:
            refuse(f"{other.name} lies on {device_text(other.device)}, but {first.name} on {device_text(first.device)}")


def device_text(device: tuple) -> str:
    return "the CPU" if device[0] == 0 else f"GPU {device[1]}"


def row_stride(operand: Operand) -> int:
    """The stride of the last dimension but one, checked as far as the C interface cannot see it: its 0 stands for
    contiguous rows."""
    if 0 in operand.shape:
        return operand.shape[-1]
    extent, stride = operand.shape[-2], operand.strides[-2]
    if operand.shape[-1] > 1 and operand.strides[-1] != 1:
        refuse(f"{operand.name} has the strides {list(operand.strides)}, expected 1 in its last dimension: make it contiguous")
    if extent <= 1:
        return operand.shape[-1]
    if stride == 0:
        refuse(f"{operand.name} repeats one row (a stride of 0), expected rows of their own: make it contiguous")
    return stride


def nvfp4(values: Operand, scales: Operand, global_scale: Operand | None, scale_layout: str) -> Operand:
    """One operand of its parts, each of which is checked."""
    name = values.name.removesuffix(".values")
    expect_format(values, UINT8)
    expect_format(scales, UINT8, FP8_E4M3)
    expect_contiguous(scales)
    expect_same_device(values, scales, global_scale)
    layout = SCALE_LAYOUTS.get(scale_layout) if isinstance(scale_layout, str) else None
    if layout is None:
        refuse(f"{name}.scale_layout is {scale_layout!r}, expected 'row_major' or 'blocked'")
    if len(values.shape) not in (2, 3):
        refuse(f"{values.name} has {len(values.shape)} dimensions, expected 2, [rows, K/2], or 3 with experts before them")
    *outer, rows, half = values.shape
    depth = 2 * half
    if depth % 16 != 0:
        refuse(f"{values.name} has rows of {half} bytes, which is {depth} elements, expected a multiple of 16")
    if layout == 0:
        expect_shape(scales, (*outer, rows, depth // 16), "one scale for each 16 elements along K")
    else:
        expected = elements(tuple(outer)) * -(-rows // 128) * 128 * (-(-(depth // 16) // 4) * 4)
        if elements(scales.shape) != expected:
            refuse(f"{scales.name} has {elements(scales.shape)} elements, expected {expected} of blocked scales")
    if global_scale is not None:
        expect_format(global_scale, FP32)
        expect_contiguous(global_scale)
        expected = outer[0] if outer else 1
        if elements(global_scale.shape) != expected:
            refuse(f"{global_scale.name} has {elements(global_scale.shape)} elements, expected {expected}")
    if len(values.shape) == 3 or half > 1 and values.strides[-1] != 1:
        expect_contiguous(values)
    strides = (*(2 * stride for stride in values.strides[:-1]), 1)
    return Operand(
        name,
        values.pointer,
        NVFP4,
        (*outer, rows, depth),
        strides,
        values.device,
        scales.pointer,
        None if global_scale is None else global_scale.pointer,
        layout,
    )


def fp8(values: Operand, scales: Operand, per: str, scale_layout: str, are_tokens: bool) -> Operand:
    """One operand of its parts, each of which is checked."""
    name = values.name.removesuffix(".values")
    expect_format(values, UINT8, FP8_E4M3)
    expect_format(scales, FP32)
    expect_contiguous(scales)
    expect_same_device(values, scales)
    format = FP8_FORMATS.get(per) if isinstance(per, str) else None
    if format is None:
        refuse(f"{name}.per is {per!r}, expected one of {', '.join(FP8_FORMATS)}")
    layouts = {"row_major": 0, "column_major": 2} if format == FP8_BLOCK and are_tokens else {"row_major": 0}
    layout = layouts.get(scale_layout) if isinstance(scale_layout, str) else None
    if layout is None:
        refuse(f"{name}.scale_layout is {scale_layout!r}, expected {' or '.join(map(repr, layouts))}")
    if len(values.shape) not in (2, 3):
        refuse(f"{values.name} has {len(values.shape)} dimensions, expected 2, [rows, K], or 3 with experts before them")
    *outer, rows, depth = values.shape
    if depth % 16 != 0:
        refuse(f"{values.name} has rows of {depth} elements, expected a multiple of 16")
    if format == FP8_TENSOR:
        expected = outer[0] if outer else 1
        if elements(scales.shape) != expected:
            refuse(f"{scales.name} has {elements(scales.shape)} elements, expected {expected}, one for each matrix")
    elif format == FP8_ROW:
        shape = (*outer, rows)
        expect_shape(scales, (*shape, 1) if len(scales.shape) > len(shape) else shape, "one scale for each row")
    elif layout == 2:
        expect_shape(scales, (*outer, -(-depth // 128), -(-rows // 4) * 4), "for each 128 along K one scale a row, rows padded to 4")
    else:
        expect_shape(scales, (*outer, rows if are_tokens else -(-rows // 128), -(-depth // 128)),
                     "one scale for 128 along K of a row" if are_tokens else "one scale for each 128 by 128")
    if len(values.shape) == 3:
        expect_contiguous(values)
    is_global = format == FP8_TENSOR
    return Operand(name, values.pointer, format, values.shape, values.strides, values.device,
                   None if is_global else scales.pointer, scales.pointer if is_global else None, layout)
