"""CSV on the Web metadata: `tableSchema.columns` with datatypes.

https://www.w3.org/TR/tabular-metadata/
"""

from __future__ import annotations

import re
from typing import Any

from dpsynth_cli.cell_format import CellFormat
from dpsynth_cli.draft.documents import flag, mapping, opposite, scalar, sequence
from dpsynth_cli.draft.facts import Facts, about, format_of, labels, type_of, wrong

KIND = "CSVW metadata"
_WHOLE = ("nonnegativeinteger", "positiveinteger", "nonpositiveinteger", "negativeinteger", "gyear")
_LOWEST = {"nonnegativeinteger": "0", "positiveinteger": "1"}
_NO_TABLE = ("time", "duration", "daytimeduration", "yearmonthduration", "gday", "gmonth", "gmonthday",
             "gyearmonth", "base64binary", "hexbinary", "xml", "html", "json", "anyuri", "qname")  # fmt: skip
_DATES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "M": "%m", "d": "%d"}
_WORDS = re.compile(r"\^?\(?(?:\?:)?([^\\\[\](){}.*+?^$]+)\)?\$?")  # a|b|c, and no other pattern


def fits(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    return "tableSchema" in document or "csvw" in str(document.get("@context", ""))[:1000]


def read(document: Any, path: str, table: str) -> list[Facts]:
    tables = [mapping(one, f"{path}, tables") for one in sequence(document.get("tables"), path)] or [document]
    named = [one for one in tables if _called(one, table)]
    if len(named or tables) != 1:
        raise wrong(
            path, f"it describes {len(tables)} tables, and not one is called {table}.", "Name the table so."
        )
    schema = mapping((named or tables)[0].get("tableSchema"), f"{path}, tableSchema")
    columns = sequence(schema.get("columns"), f"{path}, tableSchema.columns")
    at = [f"{path}, columns[{i}]" for i in range(len(columns))]
    read = [_column(mapping(one, where), where) for one, where in zip(columns, at, strict=True)]
    return [facts for facts in read if facts is not None]


def _called(table: dict[str, Any], name: str) -> bool:
    url = scalar(table.get("url")) or ""
    return url.rpartition("/")[2].partition(".")[0] == name


def _column(column: dict[str, Any], at: str) -> Facts | None:
    if flag(column.get("virtual")):
        return None
    titles = column.get("titles")
    titles = next(iter(titles.values()), None) if isinstance(titles, dict) else titles
    title = titles[0] if isinstance(titles, list) and titles else titles
    name = scalar(title) or scalar(column.get("name"))
    if name is None:
        raise wrong(at, "the column has neither a title nor a name.")
    at = f"{at} ({name})"
    datatype = column.get("datatype") or "string"
    stated = {"base": datatype} if isinstance(datatype, str) else mapping(datatype, f"{at}, datatype")
    base = (scalar(stated.get("base")) or "string").lower()
    kind = "integer" if base in _WHOLE else type_of(base.removeprefix("unsigned"))
    categories = _words(scalar(stated.get("format")), at) if kind == "nominal" else ()
    return Facts(
        name,
        at,
        kind,
        _end(stated, "minimum", "minInclusive", "minExclusive") or _LOWEST.get(base),
        _end(stated, "maximum", "maxInclusive", "maxExclusive"),
        categories,
        nullable=opposite(column.get("required")),
        about=about(column.get("dc:description") or column.get("description")),
        left_out=f"its datatype is {base}" if base in _NO_TABLE else "",
        format=_format(stated.get("format"), column.get("null")),
    )


def _format(stated: Any, null: Any) -> CellFormat | None:
    """The format of numbers or dates, and the marks of missing cells."""
    signs = stated if isinstance(stated, dict) else {}
    date = (
        stated
        if isinstance(stated, str) and re.fullmatch(f"(?:{'|'.join(_DATES)}|[-/. :T])+", stated)
        else ""
    )
    for theirs, ours in _DATES.items():
        date = date.replace(theirs, ours) if f"%{theirs[:1]}" not in date else date
    marks = [null] if isinstance(null, str) else null
    return format_of(signs.get("decimalChar"), signs.get("groupChar"), date, marks)


def _words(pattern: str | None, at: str) -> tuple[str, ...]:
    """The words of a pattern that is nothing but alternatives."""
    found = _WORDS.fullmatch(pattern) if pattern else None
    return labels(found[1].split("|"), at) if found and "|" in found[1] else ()


def _end(stated: dict[str, Any], *keys: str) -> str | None:
    return next((end for key in keys if (end := scalar(stated.get(key))) is not None), None)
