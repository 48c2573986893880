"""A column's line in a draft: what the form of its cells and public sources say, and what is missing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpsynth_cli.cell_format import date_format
from dpsynth_cli.domain import SECOND, Column
from dpsynth_cli.draft.facts import ENDS, Facts, ends
from dpsynth_cli.draft.names import YEARS, bounds_by_name
from dpsynth_cli.draft.text import quoted, remark, scalar_text
from dpsynth_cli.numbers import day, decimal, moment
from dpsynth_cli.spec.column_formats import OF_TYPE
from dpsynth_cli.spec.keys import written
from dpsynth_cli.spec.reader import TO_FILL_IN
from dpsynth_cli.trusted.rows.forms import Look
from dpsynth_cli.trusted.rows.look import Seen, fits_type


@dataclass(frozen=True)
class Meaning:
    """What the form of a column's cells means for its keys; `why` it is left out where it has no type."""

    type: str | None = None
    bounds: tuple[str, str] | None = None
    why: str = ""
    note: str = ""


# Which keys a column gets by the form of its cells (trusted/rows/forms.py). Decided here and nowhere else.
MEANINGS = {
    "zero_one": Meaning("integer", ("0", "1"), note="0 or 1, by its form"),
    "boolean": Meaning("boolean"),
    "integer": Meaning("integer"),
    "number": Meaning("continuous"),
    "day": Meaning("date"),
    "moment": Meaning("datetime"),
    "label": Meaning("nominal"),
    "text": Meaning(why="hardly two of its cells are alike: names, keys or free text"),
    "empty": Meaning(),
    "unknown": Meaning(),
    "other": Meaning(),
}

_FIND = {
    "continuous": "the lowest and highest value possible (codebook, law, field width); or bounds: private",
    "integer": "the lowest and highest value possible (codebook, law, field width); or bounds: private",
    "date": "the first and last day possible (when the records began and ended); or bounds: private",
    "datetime": "the first and last moment possible (when the records began and ended); or bounds: private",
    "nominal": "all labels that are allowed (codebook, official list), or, with a delta, categories: "
    "private, other: rest; delete the line of a name or key",
    "ordinal": "all labels that are allowed, in order (codebook, form)",
    "type": "the type and bounds; boolean has no bounds, nominal and ordinal have categories: [a, b] instead",
    "type alone": "the type: integer or continuous",
}


MOST_DECIMALS = 4  # that a draft makes a grid of
_MICROS = {step: Fraction(long * SECOND) for step, long in (("1d", 86_400), ("1h", 3600), ("1min", 60))}
OTHER_WORDS = ("other", "others", "unknown")  # a category for what no category names
NARROW = "by its name: narrow it to the years that this table is about"
MANY_LABELS = 500  # from which a draft asks whether they are names or keys
UNDESCRIBED = "no public source describes it"


@dataclass(frozen=True)
class Line:
    """A column in a draft: its YAML, what is missing in it, and whether it is left out."""

    name: str
    text: str
    missing: str = ""
    left_out: str = ""


def line_of(seen: Seen, known: Facts | None, *, strict: bool = False) -> Line:
    """The line of a column that was seen, by what is known of it; `strict`: by public sources alone."""
    meaning = MEANINGS[seen.look.form]
    facts = known or Facts(seen.name, "")
    kind = _kind(meaning, facts)
    why = facts.left_out or _why_not(seen, meaning, facts, kind)
    if known is None and strict:
        why = UNDESCRIBED
    if why:
        return Line(seen.name, f"  # {remark(f'{seen.name}: left out; {why}')}", left_out=remark(why))
    note, missing = facts.about or meaning.note, ""
    keys = {"type": kind or f'"{TO_FILL_IN}"'}
    if kind in ENDS or kind is None:
        bounds, found, guessed = _bounds(kind, facts, meaning, None if strict else seen)
        keys["bounds"] = f"[{', '.join(bounds)}]"
        if kind is None or not found:
            missing = _FIND[kind or ("type alone" if facts.bounds else "type")]
        note = guessed or note
    elif kind != "boolean":
        listed = [scalar_text(label) for label in facts.categories] or [f'"{TO_FILL_IN}"'] * 2
        keys["categories"] = f"[{', '.join(listed)}]"
        other = facts.other or next((one for one in facts.categories if one.lower() in OTHER_WORDS), None)
        if other is not None:
            keys["other"] = scalar_text(other)
        missing = "" if facts.categories else _FIND[kind]
        if len(facts.categories) >= MANY_LABELS:
            note = f"{len(facts.categories):,} labels: delete the line if they are names or keys"
    nullable = facts.nullable if facts.nullable is not None else seen.look.missing
    if nullable is not False:  # nobody knows: then missing cells must have a place
        keys["nullable"] = "true"
    keys |= _written(seen.look, kind, facts)
    notes = (f"fill in {missing}" if missing else note, _unlike(seen.look, kind), _either(seen.look))
    comment = remark("; ".join(filter(None, notes)))
    text = f"  {quoted(seen.name)}: {{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}"
    return Line(seen.name, f"{text}  # {comment}" if comment else text, missing)


def _kind(meaning: Meaning, facts: Facts) -> str | None:
    """The type: the source's own, else what its categories or bounds say, else that of the form."""
    kind = facts.type or meaning.type
    if facts.type == "boolean":
        return facts.type
    if {label.lower() for label in facts.categories} == {"false", "true"}:
        return "boolean"
    if facts.type in ("ordinal", "nominal"):
        return facts.type
    if facts.categories:
        numbers = all(decimal(label) is not None for label in facts.categories)
        return "ordinal" if numbers and kind in ("integer", "continuous") else "nominal"
    stated = [end for end in (facts.lower, facts.upper) if end is not None]
    if facts.type or not stated:
        return kind
    if all(decimal(end) is not None for end in stated):
        whole = all((decimal(end) or 0).denominator == 1 for end in stated)
        if kind is None or kind == "continuous" or (kind == "integer" and whole):
            return kind
        return "continuous"
    if all(day(end) is not None for end in stated):
        return kind if kind == "datetime" else "date"
    return "datetime" if all(moment(end) is not None for end in stated) else kind


def _unlike(look: Look, kind: str | None) -> str:
    """A remark where a source says a number or a time, and cells are labels."""
    return (
        f"many cells are no {kind}: dpsynth check --data counts them"
        if kind in ENDS and look.form == "label"
        else ""
    )


def _either(look: Look) -> str:
    """A remark where the form of dates leaves open which number is the day."""
    first = look.format.date[:2]
    return (
        "check which is first, the day or the month"
        if first in ("%d", "%m") and "%m" in look.format.date
        else ""
    )


def _written(look: Look, kind: str | None, facts: Facts) -> dict[str, str]:
    """The keys for the format of cells and for the grid of values, by their form."""
    if kind is None:
        return {}
    bounds = [decimal(end) for end in (facts.lower, facts.upper) if end is not None]
    decimals = look.decimals if kind == "continuous" and 0 < (look.decimals or 0) <= MOST_DECIMALS else None
    if decimals and any(end is None or (end * 10**decimals).denominator != 1 for end in bounds):
        decimals = None  # a bound that is not on the grid
    step = _MICROS.get(look.step or "") if kind == "datetime" and not _by_format(look) else None
    labels = facts.labels if len(facts.labels) == len(facts.categories) else ()
    form = facts.format or look.format
    column = Column("", kind, 0, 0, facts.categories, None, False, step, decimals, "linear", labels, form)
    return {name: _yaml(value) for name, value in written(OF_TYPE[kind], column).items()}


def _by_format(look: Look) -> bool:
    """Whether moments are on their step because no finer one can be written."""
    date = look.format.date
    return bool(date) and date_format(date).resolution >= _MICROS.get(look.step or "", 0)


def _yaml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{scalar_text(one)}: {scalar_text(label)}' for one, label in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(scalar_text, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | int) else _text(value)


def _text(value: str) -> str:
    return value if re.fullmatch("[0-9]+[a-z]+|log|asinh", value) else json.dumps(value, ensure_ascii=False)


def _why_not(seen: Seen, meaning: Meaning, facts: Facts, kind: str | None) -> str:
    """Why a column cannot be released as it is, if so."""
    if seen.type is not None and kind is not None and not fits_type(seen.type, kind):
        return f"{facts.at} says {kind}, but the file has {seen.type}"
    if not meaning.why or kind == "boolean" or facts.categories:
        return ""
    if seen.look.form == "text" and kind in ENDS:
        return f"{facts.at} says {kind}, but its cells are not written so"
    return meaning.why if kind is None or kind in ENDS or seen.look.form == "text" else ""


def _bounds(
    kind: str | None, facts: Facts, meaning: Meaning, seen: Seen | None
) -> tuple[tuple[str, str], bool, str]:
    """Both ends as YAML, whether they are known, and a remark if they are a guess."""
    unknown = f'"{TO_FILL_IN}"'
    if facts.bounds and kind is not None:
        low, high = ends(facts, kind)
        return (scalar_text(low), scalar_text(high)), True, ""
    if facts.lower is not None or facts.upper is not None:
        if kind is not None:
            ends(replace(facts, lower=facts.lower or facts.upper, upper=facts.upper or facts.lower), kind)
        low, high = (unknown if end is None else scalar_text(end) for end in (facts.lower, facts.upper))
        return (low, high), False, ""
    if meaning.bounds and kind == meaning.type:
        return meaning.bounds, True, ""
    if seen is not None and kind in ("continuous", "integer"):
        if guess := bounds_by_name(seen.name):
            return guess, True, NARROW if guess == YEARS else "by its name: check it"
        if seen.look.format.percent:
            return ("0", "100"), True, "a percentage: check it"
    return (unknown, unknown), False, ""
