"""The keys of a column that say how its cells are written, and the grid its values lie on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpsynth_cli.cell_format import DIRECTIVES, CellFormat, NotADateFormat, date_format
from dpsynth_cli.domain import GRID, SECOND, Column, exact
from dpsynth_cli.spec.keys import Key, Kind, written
from dpsynth_cli.spec.kinds import CONTROL, FLAG, SCALARS, choice, items, positive, text, whole
from dpsynth_cli.spec.reader import Reader, Wrong, plain, usable
from dpsynth_cli.spec.yaml_nodes import Keys, Node, shortened

NUMERIC, TIMES = ("continuous", "integer"), ("date", "datetime")
LONGEST_CURRENCY = 12
MOST_STEPS = 2**50  # of a bound: a float64 tells half a step there
_MARKS = 'a list of texts that mean a missing cell, such as ["", NA, "-9"]'
_WORDS = "a list of texts that differ in more than capitals, such as [Ja, J]"
_DATE = f"text such as %d/%m/%Y, of {DIRECTIVES} and signs between them"
_CURRENCY = f'a sign such as "$" or EUR, or one unit such as "1 €", at most {LONGEST_CURRENCY} characters'
_LABELS = "keys that are categories, each with a line of text, such as {1: male, 2: female}"
_DURATION = "a length of time such as 1s, 15min, 1h or 7d"
_FIRST_Y, _END_Y = -365, 36_159  # days of 1969-01-01 and 2069-01-01
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
    return Key(
        "step",
        _STEPS[kind],
        "the grid of values: 0.01 or 5; of times 1h, 15min, 7d. It is what is modelled, so spikes stay",
        brief=True,
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


def check(declared: Reader, column: Column, labels: Mapping[str, str]) -> Column:
    """The column with its labels; what does not go together is noted."""
    _check_signs(declared, column)
    if column.categorical:
        return _labelled(declared, column, labels)
    _check_grid(declared, column)
    if column.format.date and "y" in date_format(column.format.date).letters:
        day = 1 if column.type == "date" else 86_400 * SECOND
        if column.lower < _FIRST_Y * day or column.upper >= _END_Y * day:
            declared.note("date", "has %y, which is 1969 to 2068; the bounds must lie there")
    return column


def _check_signs(declared: Reader, column: Column) -> None:
    form = column.format
    if form.thousands == form.decimal:
        declared.note("thousands", f'is "{form.thousands}", which is the decimal sign; they must differ')
    if form.currency and form.percent:
        declared.note("percent", "is true, and there is a currency; it must be one of them")
    if bool(form.true) != bool(form.false):
        declared.note("true" if form.true else "false", "is stated without the other; state true and false")
    folded = [word.strip().lower() for word in (*form.true, *form.false)]
    said = folded if column.type == "boolean" else list(column.categories)
    for mark in form.missing:
        if (mark.lower() if column.type == "boolean" else mark) in said:
            declared.note("missing", f"lists {shortened(mark)}, which is a value of the column too")
    if len(set(folded)) < len(folded):
        declared.note("true", "and false share a text; each must mean one thing")


def _labelled(declared: Reader, column: Column, labels: Mapping[str, str]) -> Column:
    from dataclasses import replace

    strange = [category for category in labels if category not in column.categories]
    if column.type != "boolean" and strange:
        declared.note("labels", f"names {shortened(strange[0])}, which is not one of the categories")
    if not labels or strange:
        return column
    return replace(column, labels=tuple(labels.get(one, one) for one in column.categories))


def _check_grid(declared: Reader, column: Column) -> None:
    if column.step is not None and column.decimals is not None:
        declared.note("decimals", "is stated beside step; state one of them")
        return
    if column.scale != "linear" and column.grid is not None:
        declared.note("scale", "is stated beside step or decimals, which keep every value; state one of them")
        return
    if column.scale == "log" and column.lower <= 0:
        declared.note("scale", "is log, which needs a lower bound above 0; for other bounds there is asinh")
    if column.step is None and column.decimals is None:
        return
    name = "decimals" if column.step is None else "step"
    grid = column.grid
    if grid is not None:
        for bound in (column.lower, column.upper):
            steps = exact(bound) / grid
            if steps.denominator != 1:
                declared.note(name, f"does not fit the bounds: {bound:.15g} is not a multiple of it")
                return
            if abs(steps) > MOST_STEPS or max(grid.numerator, grid.denominator) > MOST_STEPS:
                declared.note(name, "is too fine; there are 2^50 steps at most from 0 to a bound")
                return
    if column.size > GRID:
        declared.note(name, f"gives {column.size:,} values; there may be {GRID:,}: widen it or leave it out")
