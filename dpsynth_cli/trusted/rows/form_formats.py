"""Which of a public list of formats the cells of a column have: for `forms.py`, which says what may leave.

The list is in this file, so that what is found is a place in it: a currency, a decimal sign, the order of a
date, a pair of words. It is no value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from dpsynth_cli.arrow import from_texts, to_numpy
from dpsynth_cli.cell_format import CellFormat, date_format, in_bytes
from dpsynth_cli.trusted.rows.formatted import formatted_instants, number_pattern
from dpsynth_cli.trusted.rows.text import NAT

CURRENCIES = ("$", "€", "£", "¥", "EUR", "USD", "CHF", "GBP", "kr", "zł")
SIGNS = ((".", ""), (".", ","), (",", ""), (",", "."), (",", " "), (".", "'"), (".", " "))  # 1.5, thousands
_DAYS = (
    "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m/%d/%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%y",
    "%d.%m.%y", "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    "%b %d %Y", "%B %d %Y",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %H:%M:%S.%f")
DATES = tuple(day + clock for day in _DAYS for clock in _CLOCKS)
TRUTH = (
    ("Ja", "Nein"), ("J", "N"), ("Wahr", "Falsch"), ("Oui", "Non"), ("O", "N"), ("Vrai", "Faux"),
    ("Sí", "No"), ("Si", "No"), ("Sì", "No"), ("S", "N"), ("Sim", "Não"), ("Tak", "Nie"), ("Ano", "Ne"),
    ("Да", "Нет"), ("Ja", "Nee"), ("Ja", "Nej"), ("Yes", "No"), ("Y", "N"), ("True", "False"),
)  # fmt: skip
ENGLISH = (("Yes", "No"), ("Y", "N"), ("True", "False"))
RARE = 0.01  # of cells that have a sign which is to say something about the column


def part(cells: pa.Array, pattern: str) -> float:
    """The share of cells that fit."""
    from pyarrow import compute as pc

    fits = to_numpy(pc.match_substring_regex(cells, f"^(?:{pattern})$"))
    return float(np.mean(fits)) if len(fits) else 0.0


def share(cells: pa.Array, pattern: str) -> float:
    """The same, but none, if hardly any of the first ones fits: patterns are slow."""
    return part(cells, pattern) if part(cells[:200], pattern) > 0.5 else 0.0


def number_format(cells: pa.Array, enough: float) -> CellFormat | None:
    """The first format in which almost all cells are numbers, and whose signs are there."""
    if part(cells, "[^0-9]*0[0-9].*") >= RARE:  # 007: codes
        return None
    return next(
        (form for form in _number_formats(cells) if share(cells, number_pattern(form)) >= enough), None
    )


def _number_formats(cells: pa.Array) -> Iterator[CellFormat]:
    percent = share(cells, ".*%") > 0.5
    signs = [sign for sign in CURRENCIES if share(cells, f".*{in_bytes(sign)}.*") > 0.5]
    # An amount of 1.234 € is a thousand: no currency has three decimals in almost all cells with a point.
    points = (
        part(cells, r".*\.[0-9]{3}(?:[^0-9].*)?") >= RARE
        and part(cells, r".*\.[0-9]{1,2}(?:[^0-9].*)?") < RARE
    )
    for decimal, thousands in SIGNS[3:] + SIGNS[:3] if signs and points else SIGNS:
        if percent:
            yield CellFormat(decimal=decimal, thousands=thousands, percent=True)
        for sign in signs:
            yield CellFormat(decimal=decimal, thousands=thousands, currency=_placed(cells, sign))
        there = [sign for sign in (decimal.replace(".", ""), thousands) if sign]
        if there and all(part(cells, f".*{in_bytes(sign)}.*") >= RARE for sign in there):
            yield CellFormat(decimal=decimal, thousands=thousands)


def _placed(cells: pa.Array, sign: str) -> str:
    """A currency as most cells write it: before or after the number, with a blank or without."""
    text = in_bytes(sign)
    if share(cells, f".*[0-9] ?{text}") > 0.5:
        return f"1 {sign}" if share(cells, f".* {text}") > 0.5 else f"1{sign}"
    return f"{sign} 1" if share(cells, f"[-+]?{text} .*") > 0.5 else sign


def date_form(cells: pa.Array, enough: float) -> str:
    """The first format of dates that almost all cells have; "" if none."""
    for text in DATES:
        form = date_format(text)
        if share(cells, form.pattern) >= enough and np.mean(formatted_instants(cells, form) != NAT) >= enough:
            return text
    return ""


def truth(cells: pa.Array, enough: float) -> CellFormat | None:
    """The first pair of words for true and false that almost all cells are, in the capitals they have."""
    from pyarrow import compute as pc

    few = cells.unique() if len(cells) else cells
    if not 0 < len(few) <= 100:
        return None
    one_sided = None
    for pair in TRUTH:
        for write in (str, str.lower, str.upper):
            words = [write(word) for word in pair]
            are = [to_numpy(pc.is_in(cells, value_set=from_texts([word], cells.type))) for word in words]
            if (are[0] | are[1]).mean() < enough:
                continue
            found = CellFormat(true=(words[0],), false=(words[1],))
            if all(one.mean() >= RARE for one in are):
                return found
            if pair in ENGLISH:  # "no" alone is Spanish too, but read without a format only in English
                one_sided = one_sided or found
    return one_sided
