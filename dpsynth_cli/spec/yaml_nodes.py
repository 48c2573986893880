"""A YAML text as a tree that remembers where everything was written.

Scalars stay text: the key that holds a value decides what it means, so `NO` is never false, `012`
never ten, and 0.1 never a binary fraction. Anchors, aliases, merge keys and tags are refused: a spec
says what it says where it says it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 20
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Place(NamedTuple):
    """Where something was written: a line of a file, or an option of the command line.

    >>> print(Place("spec.yaml", 7), "|", Place("--set privacy.epsilon"))
    spec.yaml, line 7 | --set privacy.epsilon
    """

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}, line {self.line}"


@dataclass(frozen=True)
class Mistake:
    """What is wrong with the key at `path`, and where it was written."""

    place: Place
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.path} {self.text}" if self.path else f"{self.place}: {self.text}"


@dataclass(frozen=True)
class Scalar:
    """One value, as written."""

    text: str
    place: Place
    quoted: bool = False

    @property
    def null(self) -> bool:
        return not self.quoted and self.text in ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True)
class Items:
    """A list."""

    nodes: tuple[Node, ...]
    place: Place


class Entry(NamedTuple):
    """A key's place and its value."""

    place: Place
    node: Node


@dataclass(frozen=True)
class Keys:
    """A mapping, in the order written."""

    entries: dict[str, Entry]
    place: Place


@dataclass(frozen=True)
class Refused:
    """A value that cannot be used, and whose mistake has been noted."""

    place: Place


Node: TypeAlias = Scalar | Items | Keys | Refused


class NotYaml(Exception):
    """The text cannot be read as one YAML document at all."""

    def __init__(self, place: Place, problem: str) -> None:
        self.place, self.problem = place, problem
        super().__init__(f"{place}: {problem}")


def parse(text: str, at: Callable[[int], Place], path: str = "") -> tuple[Node | None, list[Mistake]]:
    """The tree of a YAML text (None where it is empty) and the mistakes in its form.

    >>> parse("a: [012, NO]", lambda line: Place("spec.yaml", line))[0].entries["a"].node.nodes[1].text
    'NO'
    """
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise NotYaml(at(line), "this is not text: it holds a control character")
    mistakes: list[Mistake] = []
    tree: Node | None = None
    try:
        events = yaml.parse(text, Loader=_Loader)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if tree is not None:
                    raise NotYaml(at(_line(event)), "a second document starts here; one is allowed")
                tree = _Builder(events, at, mistakes).node(next(events), path, 0)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise NotYaml(at(mark.line + 1 if mark else 1), f"this is not valid YAML: {problem}") from None
    return tree, mistakes


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


@dataclass(frozen=True)
class _Builder:
    """Makes nodes of a stream of parse events, and notes what is refused."""

    events: Iterator[Any]
    at: Callable[[int], Place]
    mistakes: list[Mistake]

    def node(self, event: Any, path: str, depth: int) -> Node:
        place = self.at(_line(event))
        if depth > _DEEPEST:
            raise NotYaml(place, f"this is nested more than {_DEEPEST} deep")
        if isinstance(event, yaml.AliasEvent):
            self.note(place, path, f"is the alias *{event.anchor}; write the value itself")
            return Refused(place)
        if event.anchor is not None:
            self.note(place, path, f"has the anchor &{event.anchor}; anchors are not used here, leave it out")
        if event.tag is not None:
            self.note(place, path, f"has the tag {event.tag}; tags are not used here, leave it out")
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, place, quoted=not event.implicit[0])
        if isinstance(event, yaml.SequenceStartEvent):
            nodes = tuple(self.node(item, path, depth + 1) for item in self.until(yaml.SequenceEndEvent))
            return Items(nodes, place)
        entries: dict[str, Entry] = {}
        for start in self.until(yaml.MappingEndEvent):
            key = self.node(start, path, depth + 1)
            name = key.text if isinstance(key, Scalar) else "?"
            inside = dotted(path, name)
            value = self.node(next(self.events), inside, depth + 1)
            if isinstance(key, Refused):
                continue
            if not isinstance(key, Scalar):
                self.note(key.place, path, "has a key that is a list or a mapping; keys are text")
            elif name == "<<" and not key.quoted:
                self.note(key.place, path, "has a merge key (<<); write the keys themselves")
            elif name in entries:
                first = entries[name].place.line
                twice = "is written twice" + (f", first on line {first}" if first else "")
                self.note(key.place, inside, f"{twice}; it must be there once")
            else:
                entries[name] = Entry(key.place, value)
        return Keys(entries, place)

    def note(self, place: Place, path: str, text: str) -> None:
        self.mistakes.append(Mistake(place, path or "the document", text))

    def until(self, end: type) -> Iterator[Any]:
        while not isinstance(event := next(self.events), end):
            yield event


def from_json(value: Any, place: Place) -> Node:
    """The tree of a JSON value, all of it at one place.

    >>> shown(from_json({"a": [1, "NO", None, True]}, Place("audit")))
    '{a: [1, "NO", null, true]}'
    """
    if isinstance(value, dict):
        return Keys(
            {str(key): Entry(place, from_json(inside, place)) for key, inside in value.items()}, place
        )
    if isinstance(value, list):
        return Items(tuple(from_json(inside, place) for inside in value), place)
    return Scalar(value if isinstance(value, str) else json.dumps(value), place, isinstance(value, str))


def as_plain(node: Node) -> Any:
    """A tree without its places: dictionaries, lists, texts as written, None. `from_json` is its inverse.

    >>> as_plain(from_json({"a": [1, "NO", None]}, Place("audit")))
    {'a': ['1', 'NO', None]}
    """
    if isinstance(node, Keys):
        return {key: as_plain(entry.node) for key, entry in node.entries.items()}
    if isinstance(node, Items):
        return [as_plain(inside) for inside in node.nodes]
    return None if not isinstance(node, Scalar) or node.null else node.text


def dotted(path: str, key: str) -> str:
    """The path of a key inside `path`; a key that is not one plain word is quoted.

    >>> dotted("columns", "age"), dotted("columns", "a.b")
    ('columns.age', 'columns."a.b"')
    """
    word = key if re.fullmatch(r"[\w-]{1,60}", key) else shortened(json.dumps(key, ensure_ascii=False))
    return f"{path}.{word}" if path else word


def shown(node: Node) -> str:
    """A value as a message shows it: as written, on one line, and not too long."""
    return shortened(_written(node))


def shortened(text: str) -> str:
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:80])
    return text if len(text) <= 60 else text[:59] + "…"


def _written(node: Node) -> str:
    if isinstance(node, Scalar):
        return json.dumps(node.text, ensure_ascii=False) if node.quoted else node.text
    if isinstance(node, Items):
        return "[" + ", ".join(_written(inside) for inside in node.nodes[:30]) + "]"
    if isinstance(node, Keys):
        pairs = list(node.entries.items())[:30]
        return "{" + ", ".join(f"{key}: {_written(entry.node)}" for key, entry in pairs) + "}"
    return "…"


def places_of(tree: Keys) -> dict[str, str]:
    """Where each key of the first two levels was written."""
    places = {}
    for key, (place, node) in tree.entries.items():
        places[key] = str(place)
        for inside, entry in node.entries.items() if isinstance(node, Keys) else ():
            places[dotted(key, inside)] = str(entry.place)
    return places
