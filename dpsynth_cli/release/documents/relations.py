"""The relations of a spec in words: what is computed, as what, and what every row keeps."""

from __future__ import annotations

from typing import Any

from dpsynth_cli.spec.columns import column_document
from dpsynth_cli.spec.relations import Stated


def in_words(stated: Stated) -> dict[str, Any]:
    """Each computed column with what it is computed from and what it can be; each rule; nothing if there is
    neither."""
    relations = stated.relations
    found = [
        f"{one} determines {other}, by a table that is found for a part of the budget"
        for one, other in stated.looked_up
    ]
    if not relations.computed and not relations.kept and not found:
        return {}
    computed = {
        one.column.name: {"from": list(relations.modelled(one.expression))} | column_document(one.column)
        for one in relations.computed
    }
    return {
        "computed": {
            column.name: computed[column.name] for column in stated.columns if column.name in computed
        },
        "rules": [rule.words for rule in relations.kept] + found,
    }
