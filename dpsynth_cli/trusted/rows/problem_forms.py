"""How cells look that are not as declared: a currency sign, a decimal comma, a date with the day first.

Only how many cells have each form is kept, never a cell. A pattern is matched on the cell alone, by RE2 on
its bytes (so `\\xa3` is that byte), and the first that fits gives the form; where a file is cut changes
nothing.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli import numbers as grammar
from dpsynth_cli.arrow import from_numpy, from_texts, to_numpy
from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.rows.text import as_binary, as_string

_GAP = r"(?: |'|\xa0|\xc2\xa0|\xe2\x80\xaf|\xe2\x80\x99)"  # between thousands
_AMOUNT = rf"[-+]?(?:[0-9](?:[0-9.,]|{_GAP})*|[.,][0-9]+)"
_SIGN = r"(?:[A-Z]{0,3}\$|[A-Z]{3}|\xa3|\xa5|\x80|\xc2[\xa2-\xa5]|\xe2\x82[\xa0-\xbf]|(?i:kr|rs|zl|fr)\.?)"
_DAY, _MONTH, _AFTER_12 = "(?:0?[1-9]|[12][0-9]|3[01])", "(?:0?[1-9]|1[0-2])", "(?:1[3-9]|2[0-9]|3[01])"
_REST = r"[/.-](?:[0-9]{4}|[0-9]{2})(?:[ T,].*)?$"
_MONTHS = "(?i:jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)"

NUMBERS = {
    "percent sign": rf"^{_AMOUNT} ?%$",
    "currency sign": rf"^\(?[-+]?{_SIGN}{_GAP}?{_AMOUNT}\)?$|^\(?{_AMOUNT}{_GAP}?{_SIGN}\)?$",
    "thousands separators": rf"^[-+]?[0-9]{{1,3}}(?:(?:,[0-9]{{3}})+|(?:{_GAP}[0-9]{{3}})+)(?:\.[0-9]*)?$",
    "decimal comma": rf"^[-+]?[0-9]*(?:(?:\.|{_GAP})[0-9]{{3}})*,[0-9]+(?:[eE][-+]?[0-9]+)?$",
    "points between thousands": r"^[-+]?[0-9]{1,3}(?:\.[0-9]{3}){2,}$",
    "decimal point": rf"^{grammar.NUMBER}$",  # where another format is declared
}
TIMES = {
    "YYYY-MM-DD": rf"^{grammar.DAY}(?:{grammar.CLOCK}{grammar.ZONE}?)?$",  # where another format is declared
    "day first": f"^{_AFTER_12}[/.-]{_MONTH}{_REST}",
    "month first": f"^{_MONTH}[/.-]{_AFTER_12}{_REST}",
    "day or month first": f"^{_MONTH}[/.-]{_MONTH}{_REST}",
    "not YYYY-MM-DD": rf"^[0-9]{{4}}[-/.]{_MONTH}[-/.]{_DAY}(?:[ T].*)?$",
    "digits only": r"^(?:[0-9]{5}|[0-9]{8}|[0-9]{10}|[0-9]{12,14})(?:\.[0-9]*)?$",
    "month by name": rf"{_MONTHS}[a-z]*[ ./-]|[ ./-]{_MONTHS}",
}
_UTF8 = (
    r"^(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}"
    r"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf4][\x80-\xbf]{3})*$"
)
ENCODING, CASE, DECIMALS, WORDS, OTHER = "encoding", "other case", "decimals", "words", "other"


def forms(cells: pa.Array, column: Column, times: NDArray[np.int64] | None) -> Counter[str]:
    """How many of these cells, none as declared, have each form; `times` is how often each counts."""
    if column.categorical:
        return _of_labels(as_binary(cells), column, times)
    patterns = TIMES if column.type in ("date", "datetime") else NUMBERS
    return _first_that_fits(as_binary(cells), patterns, times)


def _first_that_fits(
    cells: pa.Array, patterns: dict[str, str], times: NDArray[np.int64] | None
) -> Counter[str]:
    from pyarrow import compute as pc

    found: Counter[str] = Counter()
    for form, pattern in patterns.items():
        if not len(cells):
            break
        fits = to_numpy(pc.match_substring_regex(cells, pattern))
        found[form] += _how_many(fits, times)
        cells, times = cells.filter(from_numpy(~fits)), times if times is None else times[~fits]
    found[OTHER] += _how_many(np.ones(len(cells), np.bool_), times)
    return +found


def _of_labels(cells: pa.Array, column: Column, times: NDArray[np.int64] | None) -> Counter[str]:
    """Labels of no declared category: not UTF-8, one in other case, one with decimals, or another."""
    from pyarrow import compute as pc

    broken = ~to_numpy(pc.match_substring_regex(cells, _UTF8))
    folded = from_texts([label.lower() for label in column.categories if label], cells.type)
    short = as_binary(pc.replace_substring_regex(cells, r"^([-+]?[0-9]+)\.0+$", r"\1"))
    exact = from_texts([label for label in column.categories if label], cells.type)
    cased = to_numpy(pc.is_in(as_binary(pc.ascii_lower(as_string(cells))), value_set=folded))
    decimals = to_numpy(pc.is_in(short, value_set=exact))
    found: Counter[str] = Counter()
    left = np.ones(len(cells), np.bool_)
    rest = WORDS if column.type == "boolean" else OTHER
    for form, fits in ((ENCODING, broken), (CASE, cased), (DECIMALS, decimals), (rest, left)):
        found[form] += _how_many(fits & left, times)
        left = left & ~fits
    return +found


def _how_many(which: NDArray[np.bool_], times: NDArray[np.int64] | None) -> int:
    return int(np.count_nonzero(which) if times is None else times[which].sum())
