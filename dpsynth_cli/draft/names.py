"""Bounds that a column's name tells by common knowledge; marked in the draft, since a name may mislead."""

from __future__ import annotations

import re

YEARS = ("1900", "2100")
_WHOLE_NAME = {
    "day": ("1", "31"),
    "hour": ("0", "23"),
    "minute": ("0", "59"),
    "second": ("0", "59"),
    "weekday": ("0", "7"),
    "week": ("1", "53"),
    "lat": ("-90", "90"),
    "lon": ("-180", "180"),
    "lng": ("-180", "180"),
}
_LAST_WORD = {
    "age": ("0", "120"),
    "year": YEARS,
    "month": ("1", "12"),
    "quarter": ("1", "4"),
    "percent": ("0", "100"),
    "percentage": ("0", "100"),
    "pct": ("0", "100"),
    "humidity": ("0", "100"),
    "humid": ("0", "100"),
    "latitude": ("-90", "90"),
    "longitude": ("-180", "180"),
    "bearing": ("0", "360"),
    "azimuth": ("0", "360"),
}


def bounds_by_name(name: str) -> tuple[str, str] | None:
    """The bounds of a number that is called so, if everybody knows them.

    >>> bounds_by_name("birth_year"), bounds_by_name("hour"), bounds_by_name("minutes_per_hour")
    (('1900', '2100'), ('0', '23'), None)
    """
    words = re.findall("[a-z]+", name.casefold())
    if not words:
        return None
    return _LAST_WORD.get(words[-1]) or (_WHOLE_NAME.get(words[0]) if len(words) == 1 else None)
