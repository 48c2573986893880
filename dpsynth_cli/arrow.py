"""Arrow arrays from numpy arrays and from texts, and back, by their buffers.

pyarrow's own `array` and `to_numpy` import pandas where that is installed: most of a second, for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def from_numpy(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """The same numbers or truth values, without a copy where that can be; null where missing.

    >>> from_numpy(np.array([True, False, True]), np.array([False, False, True])).to_pylist()
    [True, False, None]
    """
    valid = None if missing is None or not missing.any() else _bits(~missing)
    type = pa.from_numpy_dtype(values.dtype)
    data = _bits(values) if values.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type, len(values), [valid, data])


def from_texts(texts: Sequence[str | bytes], type: pa.DataType) -> pa.Array:
    """Texts or bytes as an array of such a type.

    >>> from_texts(["a", "", "bc"], pa.string()).to_pylist()
    ['a', '', 'bc']
    """
    cells = [text.encode() if isinstance(text, str) else text for text in texts]
    large = pa.types.is_large_string(type) or pa.types.is_large_binary(type)
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int64 if large else np.int32)
    return pa.Array.from_buffers(type, len(cells), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(cells))])


def to_numpy(array: pa.Array, null: float | int | bool = 0) -> NDArray[Any]:
    """The numbers or truth values of an array, `null` for nulls; not to be written on.

    >>> to_numpy(from_numpy(np.array([4, 5, 6]), np.array([False, False, True]))[1:], -1).tolist()
    [5, -1]
    """
    valid, data = array.buffers()
    here = slice(array.offset, array.offset + len(array))
    if pa.types.is_boolean(array.type):
        kind = np.dtype(np.bool_)
        values = _from_bits(data, here)
    else:
        kind = np.dtype(array.type.to_pandas_dtype())
        values = np.frombuffer(data or b"", kind, len(array), here.start * kind.itemsize)
    return np.where(_from_bits(valid, here), values, kind.type(null)) if array.null_count else values


def _from_bits(data: pa.Buffer | None, here: slice) -> NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(data or b"", np.uint8), bitorder="little")
    return bits[here].astype(np.bool_)


def _bits(truth: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(truth, bitorder="little"))
