"""Documents of strangers: JSON, YAML, CSV and XML, bounded in size and depth, read in linear time.

Numbers stay text as they are written, so that 0.1 is one tenth. A mistake names the file and its line. XML
that defines entities, or refers to any but the usual five, is refused; nothing outside the file is fetched.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from dpsynth_cli.draft.facts import COST, wrong
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.spec.yaml_nodes import NotYaml, Place, as_plain, parse

LARGEST = 2**25
LARGEST_YAML = 2**22  # its tree takes much room
_DEEPEST = 100
_MOST_ELEMENTS = 500_000
_MAKE_AGAIN = "Check the file, or save it again as UTF-8."


class Number(str):
    """A number as a document writes it."""


def content(path: str, largest: int | None = None) -> str:
    """The text of a file of at most 32 MB, or less."""
    largest = largest or LARGEST
    try:
        with open(path, "rb") as file:
            raw = file.read(largest + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a file name"
        raise FileError(f"The codebook {path} cannot be read: {reason}.", COST) from None
    if len(raw) > largest:
        raise UsageError(
            f"The codebook {path} is larger than {largest >> 20} MB.", COST, "Take a smaller one."
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise wrong(f"{path}, line {line}", "this is not UTF-8 text.", _MAKE_AGAIN) from None


def from_json(path: str) -> Any:
    """The value in a JSON file; null is None, numbers are `Number`s."""

    def refuse(word: str) -> None:
        raise wrong(path, f"{word} is not JSON.", _MAKE_AGAIN)

    try:
        return json.loads(content(path), parse_int=Number, parse_float=Number, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise wrong(f"{path}, line {error.lineno}", f"this is not JSON: {error.msg}.", _MAKE_AGAIN) from None
    except RecursionError:
        raise wrong(path, "it is nested too deep.", _MAKE_AGAIN) from None


def from_yaml(path: str) -> Any:
    """The value in a YAML file; scalars are text, null is None. Anchors and tags are refused."""
    try:
        tree, mistakes = parse(content(path, LARGEST_YAML), lambda line: Place(path, line))
    except NotYaml as error:
        raise wrong(str(error.place), f"{error.problem}.", _MAKE_AGAIN) from None
    if mistakes:
        raise wrong(str(mistakes[0].place), f"{mistakes[0].path} {mistakes[0].text}.")
    return None if tree is None else as_plain(tree)


def from_csv(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The records of a CSV file with a header, each with its line; names of fields in small letters."""
    text = content(path)
    sign = max(",;\t|", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True)
    try:
        names = [name.strip().lower() for name in next(reader, [])]
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) > len(names):
                at = f"{path}, line {reader.line_num}"
                raise wrong(at, f"there are {len(row)} fields, but {len(names)} names in the header.")
            cells = (cell.strip() for cell in row)
            yield reader.line_num, dict(zip(names, cells, strict=False))
    except csv.Error as error:
        raise wrong(f"{path}, line {reader.line_num}", f"this is not CSV: {error}.", _MAKE_AGAIN) from None


@dataclass
class Element:
    """An XML element without its namespace: its attributes, its own text, its line."""

    name: str
    attributes: dict[str, str]
    line: int
    text: list[str] = field(default_factory=list)
    inside: list[Element] = field(default_factory=list)

    @property
    def said(self) -> str:
        return " ".join("".join(self.text).split())

    def all(self, name: str) -> list[Element]:
        return [element for element in self.inside if element.name == name]


def from_xml(path: str, wanted: str) -> Iterator[Element]:
    """The outermost elements of this name, in order."""
    parser = expat.ParserCreate(namespace_separator=" ")
    open_: list[Element] = []
    found: list[Element] = []
    depth = elements = 0

    def refuse(*_: Any) -> Any:
        at = f"{path}, line {parser.CurrentLineNumber}"
        raise wrong(at, "it defines or refers to an entity, which is not read.", "Take the <!DOCTYPE> out.")

    def doctype(name: str, system: str | None, public: str | None, inside: int) -> None:
        if inside:
            refuse()

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, elements
        depth, elements = depth + 1, elements + 1
        line = parser.CurrentLineNumber
        if depth > _DEEPEST or elements > _MOST_ELEMENTS:
            raise wrong(f"{path}, line {line}", "it is nested too deep, or has too many elements.")
        local = name.rpartition(" ")[2]
        if open_ or local == wanted:
            plain = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
            element = Element(local, plain, line)
            (open_[-1].inside if open_ else found).append(element)
            open_.append(element)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        if open_:
            open_.pop()

    def text(data: str) -> None:
        if open_:
            open_[-1].text.append(data)

    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = parser.SkippedEntityHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(content(path), True)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise wrong(f"{path}, line {error.lineno}", f"this is not XML: {problem}.", _MAKE_AGAIN) from None
    yield from found


# --- parts of a document ------------------------------------------------------------------------------


def mapping(value: Any, at: str) -> dict[str, Any]:
    """The value if it has keys; nothing where it is null."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(at, "here should be keys and values.")
    return value


def sequence(value: Any, at: str) -> list[Any]:
    """The value if it is a list; nothing where it is null."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(at, "here should be a list.")
    return value


def opposite(value: Any) -> bool | None:
    """The opposite of a truth value, where there is one: what is required cannot be missing."""
    known = flag(value)
    return None if known is None else not known


def scalar(value: Any) -> str | None:
    """A text or number as it is written; None for anything else."""
    return value if isinstance(value, str) and value != "" else None


def flag(value: Any) -> bool | None:
    """A truth value; None for anything else."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    return {"true": True, "false": False, "yes": True, "no": False}.get(word)
