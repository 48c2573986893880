"""Columns that are declared together: `defaults`, and names with a pattern.

Both are written out before a column is read, so that the effective document has every column with all its
keys and needs neither them nor the file whose header a pattern was compared with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from dpsynth_cli.spec.yaml_nodes import Entry, Keys, Mistake, Scalar, dotted

_RANGE = re.compile(r"(.*)\{([0-9]{1,6})\.\.([0-9]{1,6})\}(.*)", re.DOTALL)
_MOST = 10_000  # columns of one range

Names = Callable[[], Sequence[str]]


def is_pattern(name: str) -> bool:
    """Whether a name stands for several columns: q*, q{1..20}.

    >>> is_pattern("q*"), is_pattern("q{1..20}"), is_pattern("q1")
    (True, True, False)
    """
    return "*" in name or bool(_RANGE.fullmatch(name))


def counted(name: str) -> list[str] | None:
    """The names that a range stands for, without a look at any file; None if it is none.

    >>> counted("q{08..10}"), counted("q*")
    (['q08', 'q09', 'q10'], None)
    """
    found = _RANGE.fullmatch(name)
    if not found:
        return None
    before, first, last, after = found.groups()
    digits = len(first) if first.startswith("0") else 0
    end = min(int(last), int(first) + _MOST)
    return [f"{before}{i:0{digits}}{after}" for i in range(int(first), end + 1)]


def written_out(columns: Keys, header: Names, path: str, mistakes: list[Mistake]) -> Keys:
    """The columns with each pattern replaced by the columns it stands for, in the order of the header.

    A column that is declared by its name, or that an earlier pattern took, is no longer a pattern's. One with
    `drop: true` is left out.
    """
    taken = {name for name in columns.entries if not is_pattern(name)}
    entries: dict[str, Entry] = {}
    for name, entry in columns.entries.items():
        if not is_pattern(name):
            found: Collection[str] = [name]
        else:
            listed = counted(name)
            if listed is None:
                pattern = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
                there = header()
                listed = [name] if name in there else [one for one in there if pattern.fullmatch(one)]
            found = [other for other in listed if other not in taken]
            taken.update(found)
            if not listed:
                text = "is the name of no column of the input; for columns without a file there is q{1..20}"
                mistakes.append(Mistake(entry.place, dotted(path, name), text))
        if not _dropped(entry):
            entries |= dict.fromkeys(found, entry)
    return Keys(entries, columns.place)


def _dropped(entry: Entry) -> bool:
    if not isinstance(entry.node, Keys) or set(entry.node.entries) != {"drop"}:
        return False
    said = entry.node.entries["drop"].node
    return isinstance(said, Scalar) and said.text == "true" and not said.quoted


def with_defaults(columns: Keys, defaults: Keys, fitting: Callable[[str], Collection[str]]) -> Keys:
    """The columns with the defaults that they leave open and that their type has; `fitting` says which."""
    entries = {}
    for name, entry in columns.entries.items():
        node = entry.node
        if isinstance(node, Keys):
            stated = defaults.entries | node.entries
            kind = stated["type"].node if "type" in stated else None
            right = fitting(kind.text if isinstance(kind, Scalar) else "")
            more = {key: one for key, one in defaults.entries.items() if key in right}
            node = Keys(more | node.entries, node.place)
        entries[name] = Entry(entry.place, node)
    return Keys(entries, columns.place)
