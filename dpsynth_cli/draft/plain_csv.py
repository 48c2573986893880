"""The codebook that people write in a spreadsheet: a CSV file with a line for each column.

Its header has `name`, and any of type, min, max, categories, other, nullable, label. Categories are separated
by | or, if there is none, by ; or by commas. A name may have one *: `q*` is every column that begins with q.
"""

from __future__ import annotations

from dpsynth_cli.draft.documents import flag, from_csv, opposite
from dpsynth_cli.draft.facts import Facts, about, labels, type_of, wrong

KIND = "plain CSV"
_WORDS = {
    "name": ("name", "column", "variable", "field"),
    "type": ("type", "datatype", "class"),
    "lower": ("min", "minimum", "lower", "from"),
    "upper": ("max", "maximum", "upper", "to"),
    "categories": ("categories", "values", "levels", "codes", "enum"),
    "other": ("other",),
    "nullable": ("nullable", "missing"),
    "required": ("required",),
    "about": ("label", "description", "title", "meaning"),
}
_NOT_RELEASED = ("id", "key", "identifier", "text", "drop", "none")


def read(path: str) -> list[Facts]:
    return [_column(line, record, path) for line, record in from_csv(path)]


def _column(line: int, record: dict[str, str], path: str) -> Facts:
    at = f"{path}, line {line}"
    given = {key: _first(record, words) for key, words in _WORDS.items()}
    name = given["name"]
    if name is None:
        known = ", ".join(words[0] for words in _WORDS.values())
        raise wrong(at, "the column has no name.", f"A codebook in CSV has a header with some of {known}.")
    at = f"{at} ({name})"
    word, categories = given["type"], _split(given["categories"], at)
    if word is not None and word.lower() in _NOT_RELEASED:
        return Facts(name, at, about=about(given["about"]), left_out=f"its type is {word.lower()}")
    kind = type_of(word) if word is not None else None
    if word is not None and kind is None:
        allowed = "continuous, integer, date, datetime, ordinal, nominal, boolean, or id"
        raise wrong(at, f"the type {word} is not known.", f"It can be {allowed}.")
    nullable = flag(given["nullable"])
    nullable = opposite(given["required"]) if nullable is None else nullable
    if categories and kind not in ("ordinal", "boolean"):
        kind = "ordinal" if kind in ("integer", "continuous") else "nominal"
    if given["other"] is not None and given["other"] not in categories:
        raise wrong(at, f"other is {given['other']}, which is none of its categories.")
    return Facts(
        name,
        at,
        kind,
        given["lower"],
        given["upper"],
        () if kind == "boolean" else categories,
        None if kind == "boolean" else given["other"],
        nullable,
        about(given["about"]),
        pattern=name.count("*") == 1,
    )


def _first(record: dict[str, str], words: tuple[str, ...]) -> str | None:
    return next((record[word] for word in words if record.get(word)), None)


def _split(text: str | None, at: str) -> tuple[str, ...]:
    if text is None:
        return ()
    sign = next((sign for sign in "|;," if sign in text), ",")
    return labels((part.strip() for part in text.split(sign)), at)
