"""The keys of a column that say how its cells are written, and the grid its values lie on."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from dpsynth_cli.cell_format import DIRECTIVES, CellFormat, NotADateFormat, date_format
from dpsynth_cli.domain import GRID, SECOND, Column
from dpsynth_cli.labels import plain
from dpsynth_cli.spec.column_kinds import ANY, PRIVATE, or_private
from dpsynth_cli.spec.keys import Key, Kind, written
from dpsynth_cli.spec.kinds import CONTROL, FLAG, SCALARS, choice, items, positive, text, whole
from dpsynth_cli.spec.reader import Wrong, usable
from dpsynth_cli.spec.yaml_nodes import Keys, Node, shortened

NUMERIC, TIMES = ("continuous", "integer"), ("date", "datetime")
LONGEST_CURRENCY = 12
_MARKS = 'a list of texts that mean a missing cell, such as ["", NA, "-9"]'
_WORDS = "a list of texts that differ in more than capitals, such as [Ja, J]"
_DATE = f"text such as %d/%m/%Y, of {DIRECTIVES} and signs between them"
_CURRENCY = f'a sign such as "$" or EUR, or one unit such as "1 €", at most {LONGEST_CURRENCY} characters'
_LABELS = "keys that are categories, each with a line of text, such as {1: male, 2: female}"
_DURATION = "a length of time such as 1s, 15min, 1h or 7d"
_SECONDS = {"d": 86_400, "h": 3600, "min": 60, "s": 1}


def _texts(node: Node, allowed: str) -> tuple[str, ...]:
    """Different texts of one line each; a quoted one may be empty."""
    found = []
    for one in items(node, allowed):
        scalar = usable(one)
        if scalar is None or (scalar.null and not scalar.text) or not plain(scalar.text):
            raise Wrong(allowed)
        found.append(scalar.text)
    if len(set(found)) < len(found):
        raise Wrong(allowed, "says something twice")
    return tuple(found)


def _words(node: Node) -> tuple[str, ...]:
    words = _texts(node, _WORDS)
    if not words or not all(word.strip() for word in words):
        raise Wrong(_WORDS)
    return words


def _date(node: Node) -> str:
    scalar = usable(node)
    if scalar is None or not plain(scalar.text):
        raise Wrong(_DATE)
    try:
        date_format(scalar.text)
    except NotADateFormat as error:
        raise Wrong(_DATE, f"is {shortened(scalar.text)}, where {error}") from None
    return scalar.text


def _currency(node: Node) -> str:
    sign: str = text(_CURRENCY).read(node)
    before, one, after = sign.partition("1")
    bare = before + after if one else sign
    if len(sign) > LONGEST_CURRENCY or not bare.strip() or re.search(r"[-+.,()%'\"0-9]", bare):
        raise Wrong(_CURRENCY)
    if before.strip() and after.strip():
        raise Wrong(_CURRENCY)
    return sign


def _labels(node: Node) -> tuple[tuple[str, str], ...]:
    usable(node)
    if not isinstance(node, Keys):
        raise Wrong(_LABELS)
    line = text(_LABELS)
    return tuple((category, line.read(entry.node)) for category, entry in node.entries.items())


def _thousands(node: Node) -> str:
    scalar = usable(node)
    if scalar is None or scalar.text not in (".", ",", "'", " "):
        raise Wrong('one of ".", ",", "\'" and " " (in quotes)')
    return scalar.text


def _duration(node: Node) -> Fraction:
    scalar = usable(node)
    found = re.fullmatch(r"([1-9][0-9]{0,11})(d|h|min|s)", scalar.text) if scalar else None
    if not found:
        raise Wrong(_DURATION)
    return Fraction(int(found[1]) * _SECONDS[found[2]] * SECOND)


def _days(node: Node) -> Fraction:
    days = _duration(node) / (86_400 * SECOND)
    if days.denominator != 1:
        raise Wrong("whole days such as 1d or 7d")
    return days


def _spelt(micros: Fraction | None) -> str | None:
    if micros is None:
        return None
    seconds = int(micros) // SECOND
    unit = next(unit for unit, span in _SECONDS.items() if seconds % span == 0)
    return f"{seconds // _SECONDS[unit]}{unit}"


_TEXTS = {"type": "array", "items": {"type": [*SCALARS]}, "uniqueItems": True}
_SPAN = {"type": "string", "pattern": "^[1-9][0-9]{0,11}(d|h|min|s)$"}
_NUMBER = positive("a positive number such as 0.01 or 5")
_STEPS = {
    "continuous": _NUMBER,
    "integer": Kind(
        lambda node: Fraction(whole("a whole number from 1", 1, GRID).read(node)),
        {"type": "integer", "minimum": 1, "maximum": GRID},
        lambda step: None if step is None else int(step),
    ),
    "date": Kind(_days, _SPAN, lambda days: _spelt(None if days is None else days * 86_400 * SECOND)),
    "datetime": Kind(_duration, _SPAN, _spelt),
}


def _format(name: str, kind: Kind, about: str, default: Any = None) -> Key:
    def of(column: Column) -> Any:
        return getattr(column.format, name) or default

    return Key(name, kind, about, default=default, brief=True, of=of)


def _listed(texts: tuple[str, ...] | None) -> list[str] | None:
    return None if texts is None else list(texts)


MISSING = _format(
    "missing",
    Kind(lambda node: _texts(node, _MARKS), _TEXTS, _listed),
    'texts that mean a missing cell, such as `["", NA, "-9"]`; the first is what the release writes',
)
NUMBERS = (
    Key(
        "decimal",
        choice((".", ",")),
        'the decimal sign: `"."`, or `","`, which it is too where `"."` stands between thousands',
        brief=True,
        of=lambda column: None if column.format.decimal == "." else column.format.decimal,
    ),
    _format(
        "thousands",
        Kind(_thousands, {"enum": [".", ",", "'", " "]}),
        'the sign between thousands: `"."`, `","`, `"\'"` or `" "`; cells may leave it out',
    ),
    _format(
        "currency",
        Kind(_currency, {"type": "string", "pattern": f"^[^{CONTROL}]+$", "maxLength": LONGEST_CURRENCY}),
        'the sign of a currency, `"$"`, or one unit as the file writes it, `"1 €"`; cells may leave it out',
    ),
    _format("percent", FLAG, "`true`: cells end in %; 89.3% is 89.3, and so are bounds", False),
)
DATE = _format(
    "date",
    Kind(_date, {"type": "string", "pattern": "%"}),
    f"how days and times are written, such as `%d/%m/%Y`: {DIRECTIVES} and the signs between them",
)
TRUTH = tuple(
    _format(
        word, Kind(_words, _TEXTS, _listed), f"texts that mean {word}, in any capitals; the first is written"
    )
    for word in ("true", "false")
)
DECIMALS = Key(
    "decimals",
    whole("a whole number from 0 to 15", 0, 15),
    "how many decimals values have: `2` is a step of 0.01, written with two decimals",
    brief=True,
)
SCALE = Key(
    "scale",
    choice(("linear", "log", "asinh")),
    "where steps are equal: between values (`linear`), their logarithms (`log`, for positive skewed numbers) "
    "or their inverse hyperbolic sines (`asinh`, for both signs)",
    default="linear",
    brief=True,
)
LABELS = Key(
    "labels",
    Kind(_labels, {"type": "object", "additionalProperties": {"type": SCALARS}}),
    "what categories mean, for people: `{1: male, 2: female}`; the release has the categories",
    brief=True,
    of=lambda column: dict(zip(column.categories, column.labels, strict=True)) if column.labels else None,
)


def step_of(kind: str) -> Key:
    """The grid that values lie on."""
    about = (
        "the grid of values: 0.01 or 5; of times 1h, 15min, 7d. It is what is modelled, so spikes stay. Of "
        "numbers also `private`: found for a small part of the budget, as `joint` does where none is stated; "
        "or `any`: they are not rounded, do not look"
    )
    if kind in TIMES:
        return Key("step", _STEPS[kind], about, brief=True)
    return Key(
        "step",
        or_private(_STEPS[kind], ANY),
        about,
        brief=True,
        of=lambda column: (
            column.step if column.sought is None or column.step is not None else (ANY, PRIVATE)[column.sought]
        ),
    )


OF_TYPE: dict[str, tuple[Key, ...]] = {
    "continuous": (step_of("continuous"), DECIMALS, SCALE, *NUMBERS, MISSING),
    "integer": (step_of("integer"), *NUMBERS, MISSING),
    "date": (step_of("date"), DATE, MISSING),
    "datetime": (step_of("datetime"), DATE, MISSING),
    "ordinal": (LABELS, MISSING),
    "nominal": (LABELS, MISSING),
    "boolean": (*TRUTH, MISSING),
}


def with_format(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a column's keys, those of its format gathered in one."""
    names = CellFormat.__dataclass_fields__
    own = {name: value for name, value in values.items() if name not in names}
    stated = {name: values[name] for name in names if values.get(name) is not None}
    if stated.get("thousands") == ".":
        stated.setdefault("decimal", ",")
    return own | {"format": CellFormat(**stated)}


def words(column: Column) -> str:
    """The keys of a column's format and grid, as the spec writes them.

    >>> words(Column("pay", "continuous", 0.0, 9.0, decimals=2, format=CellFormat(currency="$")))
    'decimals: 2, currency: "$"'
    """
    said = {key: value for key, value in written(OF_TYPE[column.type], column).items() if key != "labels"}
    return ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in said.items())
