"""Reading a section of the spec as its keys declare it, and what is said where a value is not allowed.

A `Reader` notes each mistake and reads on, so that all mistakes are found at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from dpsynth_cli.spec.keys import Key, Section
from dpsynth_cli.spec.yaml_nodes import (
    Entry,
    Items,
    Keys,
    Mistake,
    Node,
    Refused,
    Scalar,
    dotted,
    shortened,
    shown,
)

TO_FILL_IN = "?"  # what `dpsynth init` writes where only a person knows the value


class Wrong(Exception):
    """A value that is not allowed; `allowed` completes "it must be", `fault` replaces "is VALUE"."""

    def __init__(self, allowed: str, fault: str = "") -> None:
        self.allowed, self.fault = allowed, fault
        super().__init__(allowed)


class AlreadyNoted(Exception):
    """A value whose mistake has been noted while the YAML was read."""


class Reader:
    """Reads a mapping of the spec. Ask for every key that it may have, then `finish`: the rest is unknown."""

    def __init__(self, keys: Keys, path: str, mistakes: list[Mistake]) -> None:
        self.keys, self.path, self.mistakes = keys, path, mistakes
        self.known: list[str] = []

    def value(self, key: Key, read: Callable[[Node], Any] | None = None) -> Any:
        """The key's value, or its default where it is left out; where it is missing or wrong that is noted.

        `read` stands in for the reading of the key's kind where only now it is known what is allowed.
        """
        return self._value(key.name, key.required, read or key.kind.read, key.default)

    def values(self, keys: Iterable[Key]) -> dict[str, Any]:
        """The values of these keys by name, read in their order."""
        return {key.name: self.value(key) for key in keys}

    def section(self, section: Section) -> Reader:
        """The reader of what is inside a key; of nothing, and noting nothing, where that is not there."""

        def read(node: Node) -> Keys:
            usable(node)
            if isinstance(node, Keys) and (node.entries or not section.required):
                return node
            if section.short and isinstance(node, Scalar) and node.text and not node.null:
                return Keys({section.short: Entry(node.place, node)}, node.place)
            raise Wrong(f"keys such as {section.such_as}")

        keys = self._value(section.name, section.required, read, None)
        if keys is None:
            return Reader(Keys({}, self.keys.place), "", [])
        # A missing key is reported where its section is named, not where its first key is.
        keys = Keys(keys.entries, self.keys.entries[section.name].place)
        return Reader(keys, dotted(self.path, section.name), self.mistakes)

    def expect(self, *keys: Key | Section) -> None:
        """Take keys for known that are read later, or cannot be read."""
        self.known += [key.name for key in keys]

    def unused(self, *keys: Key | Section) -> None:
        """Refuse keys that would promise something: a release by groups has no budget, noise or seed."""
        for key in keys:
            self.expect(key)
            entry = self.keys.entries.get(key.name)
            empty = (
                entry is None
                or _null(entry.node)
                or (isinstance(entry.node, Keys) and not entry.node.entries)
            )
            if not empty:
                self.note(
                    key.name, "is stated, but a release by groups is not differentially private; leave it out"
                )

    def note(self, name: str, text: str) -> None:
        """Note a mistake at a key, or at the whole section where the key is not there."""
        entry = self.keys.entries.get(name)
        self.mistakes.append(
            Mistake(entry.place if entry else self.keys.place, dotted(self.path, name), text)
        )

    def finish(self, right: Iterable[str] = ()) -> None:
        """Note every key that nobody asked for, with the nearest right one; `right` are those to name."""
        right = list(dict.fromkeys(right or self.known))
        for name in self.keys.entries:
            if name not in self.known:
                hint, known = did_you_mean(name, right), listed(right)
                self.note(name, f"is not a known key{hint}; the keys here are {known}")

    def _value(self, name: str, required: bool, read: Callable[[Node], Any], default: Any) -> Any:
        self.known.append(name)
        entry = self.keys.entries.get(name)
        if not required and (entry is None or _null(entry.node)):
            return default
        try:
            return read(entry.node if entry else Scalar("", self.keys.place))
        except AlreadyNoted:
            return default
        except Wrong as wrong:
            state = "is missing" if entry is None else wrong.fault or _state(entry.node)
            self.note(name, f"{state}; it must be {wrong.allowed}")
            return default


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """A hint at the nearest right word, or nothing.

    >>> did_you_mean("epsilom", ["delta", "epsilon"])
    ' (did you mean epsilon?)'
    """
    right = {known.lower(): known for known in words}
    near = get_close_matches(word[:80].lower(), right, n=1)
    return f" (did you mean {shortened(right[near[0]])}?)" if near else ""


def listed(words: Sequence[str]) -> str:
    """Words as a message lists them: the first 30, each on one line.

    >>> listed(["a", "b.c"])
    'a, "b.c"'
    """
    return ", ".join(dotted("", word) for word in words[:30]) + (", …" if len(words) > 30 else "")


def usable(node: Node) -> Scalar | None:
    """The node if it is a scalar, else None; what was refused before is not reported again."""
    if isinstance(node, Refused) or (
        isinstance(node, Items) and any(isinstance(n, Refused) for n in node.nodes)
    ):
        raise AlreadyNoted
    return node if isinstance(node, Scalar) else None


def _state(node: Node) -> str:
    if _null(node):
        return "is empty"
    inside = node.nodes if isinstance(node, Items) else (node,)
    if inside and all(isinstance(one, Scalar) and one.text == TO_FILL_IN for one in inside):
        return "is still to be filled in"
    return f"is {shown(node)}"


def _null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.null
