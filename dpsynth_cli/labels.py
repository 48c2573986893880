"""Labels that are found among cells: which texts are labels, and how an answer of integers holds them.

A label is a cell's text in UTF-8, without blanks around it: one line of at most `LONGEST` bytes that is not
empty, without control characters and without the sign for bytes that could not be decoded. Nothing else is
done to it: letters large and small, and accents in one character or two, are different labels. Any other cell
has no label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.questions import Ints

LONGEST = 64  # bytes
WORDS = LONGEST // 8
Labels = NDArray[np.bytes_]  # of LONGEST bytes each, those that are not used at the end being 0

KIND = np.dtype(f"S{LONGEST}")


def plain(text: str) -> bool:
    """Whether a text is one line without control characters.

    >>> plain("naïve café"), plain("two\\nlines")
    (True, False)
    """
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)


def is_label(cell: bytes) -> bool:
    """Whether bytes without blanks around them are a label.

    >>> is_label("Orléans".encode()), is_label(b""), is_label(b"\\xff"), is_label(b"x" * 65)
    (True, False, False, False)
    """
    if not 0 < len(cell) <= LONGEST:
        return False
    try:
        text = cell.decode()
    except UnicodeDecodeError:
        return False
    return plain(text) and "\ufffd" not in text


def packed(labels: Labels, counts: Ints) -> Ints:
    """Labels and their counts as integers, a label after the other: its count, then its bytes, eight to an
    integer, the first the highest.

    >>> unpacked(packed(np.array([b"AMS", b"BER"], KIND), np.array([7, 9])))
    (['AMS', 'BER'], [7, 9])
    """
    words = np.ascontiguousarray(labels, KIND).view(">i8").reshape(len(labels), WORDS)
    return np.column_stack([counts, words]).astype(np.int64).ravel()


def unpacked(values: Ints) -> tuple[list[str], list[int]]:
    """The labels and their counts; ValueError where `packed` never made this: not labels, or not in order."""
    if len(values) % (1 + WORDS):
        raise ValueError("not a whole number of labels")
    rows = np.asarray(values, np.int64).reshape(-1, 1 + WORDS)
    cells = [np.asarray(row[1:], ">i8").tobytes() for row in rows]
    found = [cell.rstrip(b"\0") for cell in cells]
    if not all(map(is_label, found)) or any(b"\0" in one for one in found):
        raise ValueError("not labels")
    if any(one >= other for one, other in pairwise(found)):
        raise ValueError("not in order")
    return [one.decode() for one in found], rows[:, 0].tolist()


def in_order(labels: Sequence[str]) -> list[str]:
    """As numbers where all are whole numbers, else by their characters.

    >>> in_order(["10", "9"]), in_order(["b10", "b9", "a"])
    (['9', '10'], ['a', 'b10', 'b9'])
    """
    if all(re.fullmatch("[+-]?[0-9]+", label) for label in labels):
        return sorted(labels, key=lambda label: (int(label), label))
    return sorted(labels)
