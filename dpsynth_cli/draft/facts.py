"""What a public source says of a column; checked, because strangers wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dpsynth_cli.cell_format import CellFormat, NotADateFormat, date_format
from dpsynth_cli.errors import UsageError
from dpsynth_cli.labels import plain
from dpsynth_cli.numbers import day, decimal, moment, whole
from dpsynth_cli.spec.column_kinds import MOST_EXACT
from dpsynth_cli.spec.yaml_nodes import shortened

COST = "Nothing was spent."
MOST_CATEGORIES = 10_000
LONGEST_LABEL = 1_000
LONGEST_ABOUT = 70  # characters of a column's label that a draft repeats

# What sources call types, in small letters and without what follows a bracket.
TYPE_WORDS: dict[str, str] = (
    dict.fromkeys(
        ("integer", "int", "long", "short", "byte", "bigint", "smallint", "count", "year"), "integer"
    )
    | dict.fromkeys(("continuous", "number", "numeric", "float", "double", "decimal", "real"), "continuous")
    | dict.fromkeys(("boolean", "bool", "logical"), "boolean")
    | dict.fromkeys(("date",), "date")
    | dict.fromkeys(("datetime", "timestamp", "datetimestamp"), "datetime")
    | dict.fromkeys(("ordinal", "ordered"), "ordinal")
    | dict.fromkeys(("nominal", "categorical", "category", "factor", "enum"), "nominal")
    | dict.fromkeys(("string", "str", "text", "varchar", "char", "character", "object"), "nominal")
)


@dataclass(frozen=True)
class Facts:
    """What is known of a column, and where that is written; None or empty where the source is silent.

    Ends are text as the source writes them. `format` is how it says that cells are written, `labels` are what
    its categories mean. `left_out` says why a column is not to be released. `pattern`:
    the name has one * for any letters.
    """

    name: str
    at: str
    type: str | None = None
    lower: str | None = None
    upper: str | None = None
    categories: tuple[str, ...] = ()
    other: str | None = None
    nullable: bool | None = None
    about: str = ""
    left_out: str = ""
    pattern: bool = False
    format: CellFormat | None = None
    labels: tuple[str, ...] = ()

    @property
    def bounds(self) -> bool:
        return self.lower is not None and self.upper is not None


def wrong(at: str, what: str, next_step: str = "Correct it there, or leave it out.") -> UsageError:
    """What is not allowed in a public source, and where it stands."""
    return UsageError(f"{at}: {what}", COST, next_step)


def type_of(word: str) -> str | None:
    """Our type for a source's word; None if it has another meaning here, or none.

    >>> type_of("Int64"), type_of("VARCHAR(20)"), type_of("geopoint")
    ('integer', 'nominal', None)
    """
    bare = word.strip().lower().partition("(")[0].rstrip("0123456789_ ")
    return TYPE_WORDS.get(bare.removeprefix("u") if bare.startswith("uint") else bare)


def labels(values: Iterable[Any], at: str) -> tuple[str, ...]:
    """A source's categories as labels: text of one line each, none twice, none empty; nulls are no label."""
    found: dict[str, None] = {}
    for value in values:
        if value is None or value == "":
            continue
        label = text_of(value)
        if label is None or not plain(label) or len(label) > LONGEST_LABEL:
            raise wrong(at, f"a category is not one line of at most {LONGEST_LABEL} characters.")
        if label in found:
            raise wrong(at, f"the category {shortened(label)} is there twice.")
        found[label] = None
        if len(found) > MOST_CATEGORIES:
            raise wrong(at, f"there are more than {MOST_CATEGORIES:,} categories.")
    return tuple(found)


def format_of(
    decimal: Any = None, thousands: Any = None, date: Any = None, missing: Any = None, truth: Any = None
) -> CellFormat | None:
    """The format that a source states, as far as there is such a key in a spec; None if it states none."""
    said: dict[str, Any] = {}
    if decimal == ",":
        said["decimal"] = ","
    if thousands in (".", ",", "'", " ") and thousands != (decimal or "."):
        said["thousands"] = thousands
    if isinstance(date, str) and "%" in date:
        try:
            date_format(date)
            said["date"] = date
        except NotADateFormat:
            pass  # the form of the cells decides
    if isinstance(missing, list) and missing not in ([""], []):
        said["missing"] = tuple(dict.fromkeys(_words(missing)))
    if isinstance(truth, tuple) and all(isinstance(words, list) and words for words in truth):
        read = [tuple(word for word in _words(words) if word.strip()) for words in truth]
        folded = [word.lower() for words in read for word in words]
        if all(read) and len(set(folded)) == len(folded):
            said |= {"true": read[0], "false": read[1]}
    return CellFormat(**said) if said else None


def _words(values: list[Any]) -> list[str]:
    """Those of a source's values that are a line of text."""
    texts = (text_of(one) for one in values[:100])
    return [text for text in texts if text is not None and plain(text) and len(text) <= LONGEST_LABEL]


def text_of(value: Any) -> str | None:
    """A scalar as text; None for what has parts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def about(value: Any) -> str:
    """A column's label for people, on one line and not too long."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    text = "".join(c for c in text if plain(c))
    return text if len(text) <= LONGEST_ABOUT else text[: LONGEST_ABOUT - 1] + "…"


def _exact(text: str) -> int | None:
    number = whole(text)
    return None if number is None or abs(number) > MOST_EXACT else number


ENDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "continuous": (decimal, "a decimal number"),
    "integer": (_exact, "a whole number within ±2^53"),
    "date": (day, "a day such as 2020-12-31"),
    "datetime": (moment, "a time such as 2020-12-31T23:59:59"),
}


def ends(facts: Facts, kind: str) -> tuple[str, str]:
    """Both bounds as a spec of this type writes them; refuses what are none."""
    read, allowed = ENDS[kind]
    written = [_spelt(facts.lower or "", kind, False), _spelt(facts.upper or "", kind, True)]
    values = [read(end) for end in written]
    for end, value in zip(written, values, strict=True):
        if value is None:
            raise wrong(facts.at, f"the bound {shortened(end)} is not {allowed}.")
    if values[0] > values[1]:
        raise wrong(facts.at, f"the lower bound {written[0]} is above the upper bound {written[1]}.")
    return written[0], written[1]


def _spelt(end: str, kind: str, upper: bool) -> str:
    """An end in our own grammar: 17.0 is a whole number; a day is a time, its first or its last second."""
    end = end.strip()
    if kind == "integer" and (number := decimal(end)) is not None and number.denominator == 1:
        return str(int(number))
    if kind == "date" and moment(end) is not None:
        return end[:10]
    if kind == "datetime" and day(end) is not None:
        return f"{end}T23:59:59" if upper else f"{end}T00:00:00"
    return end
