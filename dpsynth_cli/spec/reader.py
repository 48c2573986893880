"""Reading a section of the spec key by key: what each value must be, and what is said where it is not.

A converter takes a node and gives a value, or raises `Wrong` with what is allowed. A `Section` calls
converters, notes the mistakes, and reads on, so that all mistakes are found at once.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import TypeVar

from dpsynth_cli import numbers
from dpsynth_cli.spec.yaml_nodes import Items, Keys, Mistake, Node, Refused, Scalar, dotted, shortened, shown

T = TypeVar("T")
D = TypeVar("D")

TODO = "?"  # what `dpsynth init` writes where only a person knows the value


class Wrong(Exception):
    """A value that is not allowed; `allowed` completes "it must be", `fault` replaces "is VALUE"."""

    def __init__(self, allowed: str, fault: str = "") -> None:
        self.allowed, self.fault = allowed, fault
        super().__init__(allowed)


class AlreadyNoted(Exception):
    """A value whose mistake has been noted while the YAML was read."""


class Section:
    """A mapping of the spec. Ask for every key that it may have, then `finish`: the rest is unknown."""

    def __init__(self, keys: Keys, path: str, mistakes: list[Mistake]) -> None:
        self.keys, self.path, self.mistakes = keys, path, mistakes
        self.known: list[str] = []

    def required(self, key: str, convert: Callable[[Node], T], instead: D) -> T | D:
        """The key's value. Where it is missing or wrong that is noted, and `instead` is given."""
        self.known.append(key)
        entry = self.keys.entries.get(key)
        try:
            return convert(entry.node if entry else Scalar("", self.keys.place))
        except AlreadyNoted:
            return instead
        except Wrong as wrong:
            state = "is missing" if entry is None else wrong.fault or _state(entry.node)
            self.note(key, f"{state}; it must be {wrong.allowed}")
            return instead

    def optional(self, key: str, convert: Callable[[Node], T], default: D) -> T | D:
        """The key's value, or the default where it is not there or is null."""
        entry = self.keys.entries.get(key)
        if entry is None or (isinstance(entry.node, Scalar) and entry.node.null):
            self.known.append(key)
            return default
        return self.required(key, convert, default)

    def section(self, key: str, such_as: str, *, needed: bool = True) -> Section:
        """The section under a key; an empty one, that notes nothing, where there is none."""

        def convert(node: Node) -> Keys:
            _usable(node)
            if isinstance(node, Keys) and (node.entries or not needed):
                return node
            raise Wrong(f"keys such as {such_as}")

        keys = (self.required if needed else self.optional)(key, convert, None)
        if keys is None:
            return Section(Keys({}, self.keys.place), "", [])
        # A missing key is reported where its section is named, not where its first key is.
        keys = Keys(keys.entries, self.keys.entries[key].place)
        return Section(keys, dotted(self.path, key), self.mistakes)

    def note(self, key: str, text: str) -> None:
        """Note a mistake at a key, or at the whole section where the key is not there."""
        entry = self.keys.entries.get(key)
        self.mistakes.append(Mistake(entry.place if entry else self.keys.place, dotted(self.path, key), text))

    def finish(self) -> None:
        """Note every key that nobody asked for, with the nearest right one."""
        for key in self.keys.entries:
            if key not in self.known:
                hint, known = did_you_mean(key, self.known), listed(list(dict.fromkeys(self.known)))
                self.note(key, f"is not a known key{hint}; the keys here are {known}")


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


def plain(text: str) -> bool:
    """Whether a text is one line without control characters.

    >>> plain("naïve café"), plain("two\\nlines")
    (True, False)
    """
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)


def decimal(node: Node, *, quoted: bool = False) -> Fraction | None:
    """The number that a scalar writes, exactly; None where it writes none, or one beyond 1e±300.

    >>> from dpsynth_cli.spec.yaml_nodes import Place
    >>> decimal(Scalar("1e-1", Place("spec.yaml", 1))), decimal(Scalar(".inf", Place("spec.yaml", 1)))
    (Fraction(1, 10), None)
    """
    scalar = _usable(node)
    if scalar is None or (scalar.quoted and not quoted):
        return None
    return numbers.decimal(scalar.text)


def number(
    allowed: str,
    low: float | Fraction | None = None,
    high: float | Fraction | None = None,
    *,
    whole: bool = False,
) -> Callable[[Node], Fraction]:
    """A converter to numbers from low to high."""

    def convert(node: Node) -> Fraction:
        value = decimal(node)
        if value is None or (whole and value.denominator != 1):
            raise Wrong(allowed)
        if (low is not None and value < low) or (high is not None and value > high):
            raise Wrong(allowed)
        return value

    return convert


def whole(allowed: str, low: int, high: int) -> Callable[[Node], int]:
    """A converter to whole numbers from low to high."""
    convert = number(allowed, low, high, whole=True)
    return lambda node: int(convert(node))


def positive(allowed: str, below: int | None = None) -> Callable[[Node], Fraction]:
    """A converter to exact positive decimals; quoted ones too, as the effective document has them."""

    def convert(node: Node) -> Fraction:
        value = decimal(node, quoted=True)
        if value is None or value <= 0 or (below is not None and value >= below):
            raise Wrong(allowed)
        return value

    return convert


def flag(node: Node) -> bool:
    """True or false, and nothing that only looks like it."""
    scalar = _usable(node)
    if scalar is None or scalar.quoted or scalar.text.lower() not in ("true", "false"):
        raise Wrong("true or false")
    return scalar.text.lower() == "true"


def text(allowed: str, longest: int | None = None) -> Callable[[Node], str]:
    """A converter to one line of text: any scalar as written, but nothing empty."""

    def convert(node: Node) -> str:
        scalar = _usable(node)
        if scalar is None or scalar.null or not scalar.text or not plain(scalar.text):
            raise Wrong(allowed)
        if longest is not None and (len(scalar.text) > longest or scalar.text != scalar.text.strip()):
            raise Wrong(allowed)
        return scalar.text

    return convert


def choice(words: Collection[str], prefix: str = "one of ") -> Callable[[Node], str]:
    """A converter to one of a few words, with a hint for a near miss."""

    def convert(node: Node) -> str:
        scalar = _usable(node)
        if scalar is not None and scalar.text in words:
            return scalar.text
        known = tuple(words)
        hint = did_you_mean(scalar.text, known) if scalar is not None else ""
        raise Wrong(f"{prefix}{listed(known)}{hint}")

    return convert


def items(node: Node, allowed: str) -> tuple[Node, ...]:
    """The items of a list."""
    _usable(node)
    if not isinstance(node, Items):
        raise Wrong(allowed)
    return node.nodes


def _usable(node: Node) -> Scalar | None:
    """The node if it is a scalar, else None; what was refused before is not reported again."""
    if isinstance(node, Refused) or (
        isinstance(node, Items) and any(isinstance(n, Refused) for n in node.nodes)
    ):
        raise AlreadyNoted
    return node if isinstance(node, Scalar) else None


def _state(node: Node) -> str:
    if isinstance(node, Scalar) and node.null:
        return "is empty"
    inside = node.nodes if isinstance(node, Items) else (node,)
    if inside and all(isinstance(one, Scalar) and one.text == TODO for one in inside):
        return "is still to be filled in"
    return f"is {shown(node)}"
