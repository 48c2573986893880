"""Which releases cannot find bounds or categories of their own, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.spec.reader import listed


def unsearchable(mechanism: Mechanism, params: Any, private: Sequence[str]) -> list[str]:
    """Why private columns cannot be looked for here, if there are any."""
    if not private:
        return []
    columns = f"{listed(private)}: bounds or categories are private, but"
    if not mechanism.private(params):
        return [f"{columns} a release by groups has no budget to find them with; state them"]
    if mechanism.stream:
        return [
            f"{columns} the cells of a stream are fixed before its first row comes, and a block can not be "
            "counted again when others are found; state them, or release a first table with private bounds "
            "and copy what its audit found"
        ]
    named = sorted(set(private) & _texts(getattr(params, "rules", None)))
    if named:
        return [
            f"{listed(named)}: a rule names values of a column whose bounds or categories are private; state "
            "them, or leave the rule out"
        ]
    return []


def _texts(written: Any) -> set[str]:
    """All keys and texts in a parameter: what a rule may name."""
    if isinstance(written, str):
        return {written}
    if isinstance(written, dict):
        return set(map(str, written)) | _texts(list(written.values()))
    if isinstance(written, (list, tuple)):
        return set().union(*map(_texts, written))
    return set()
