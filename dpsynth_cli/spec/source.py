"""Where a spec comes from: the YAML file, and the options of the command line that override it."""

from __future__ import annotations

import re
import sys

from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.spec.reader import Wrong
from dpsynth_cli.spec.yaml_nodes import (
    Entry,
    Keys,
    Mistake,
    Node,
    NotYaml,
    Place,
    Scalar,
    dotted,
    parse,
    shortened,
    shown,
)

_LARGEST_FILE = 1_000_000
STANDARD_INPUT = "standard input"  # what messages call a spec that came from there
_PART = r'(?:"[^"]*"|[^".=]+)'  # of a dotted key


def parse_file(path: str) -> tuple[Keys, list[Mistake]]:
    """The document in a file, or on standard input (-), and the mistakes in its form."""
    try:
        if path == "-":
            path, raw = STANDARD_INPUT, sys.stdin.buffer.read(_LARGEST_FILE + 1)
        else:
            with open(path, "rb") as file:
                raw = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a file name"
        raise FileError(f"The spec {path} cannot be read: {reason}.") from None
    return parse_text(raw, path)


def parse_text(raw: bytes, path: str) -> tuple[Keys, list[Mistake]]:
    """The document in a text that mistakes call `path`, and the mistakes in its form."""
    init = "A spec is a short YAML file; `dpsynth init DATA` drafts one."
    if len(raw) > _LARGEST_FILE:
        raise UsageError(f"{path} is not a spec: it is larger than 1 MB.", next_step=init)
    try:
        tree, mistakes = parse(raw.decode(), lambda line: Place(path, line))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a spec: it is not UTF-8 text.", next_step=init) from None
    except NotYaml as error:
        raise UsageError(str(error), next_step=init) from None
    if tree is None or (isinstance(tree, Scalar) and tree.null):
        raise UsageError(f"{path} is empty.", next_step=init)
    if not isinstance(tree, Keys) or not set(tree.entries) & {"dpsynth", "privacy", "mechanism", "columns"}:
        # What it holds is not repeated: it may be the data.
        raise UsageError(
            f"{path} is not a spec: it does not begin with keys such as dpsynth: 1.", next_step=init
        )
    return tree, mistakes


def override(document: Keys, setting: str, mistakes: list[Mistake]) -> Keys:
    """The document with one KEY=VALUE set; a part of the key may be in double quotes."""
    form = re.fullmatch(rf"({_PART}(?:\.{_PART})*)=(.*)", setting, re.DOTALL)
    place = Place(f"--set {form[1] if form else shortened(setting)}")
    if not form:
        mistakes.append(Mistake(place, "", "it must be KEY=VALUE, such as --set privacy.epsilon=0.5"))
        return document
    keys = [part.strip('"') for part in re.findall(_PART, form[1])]
    path = ""
    for key in keys:
        path = dotted(path, key)
    try:
        node, found = parse(form[2], lambda line: place, path)
        mistakes += found
        return set_key(document, keys, node or Scalar("", place), place)
    except NotYaml as error:
        mistakes.append(Mistake(place, "", error.problem))
    except Wrong as wrong:
        mistakes.append(Mistake(place, path, f"cannot be set: {wrong.allowed}"))
    return document


def set_key(document: Keys, keys: list[str], node: Node, place: Place) -> Keys:
    """The document with the node at this path, everything else as it was."""
    key, *rest = keys
    old = document.entries.get(key, Entry(place, Scalar("", place)))
    if rest:
        inside = old.node
        if isinstance(inside, Scalar) and inside.null:
            inside = Keys({}, place)
        if not isinstance(inside, Keys):
            raise Wrong(f"{key} is {shown(inside)}, which has no keys inside")
        entry = Entry(old.place, set_key(inside, rest, node, place))
    else:
        entry = Entry(place, node)
    return Keys(document.entries | {key: entry}, document.place)
