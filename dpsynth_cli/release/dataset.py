"""Whose budget is charged: what the spec says, and what the input says about itself."""

from __future__ import annotations

from dataclasses import replace

from dpsynth_cli.errors import NOTHING_SPENT, BudgetError, DpsynthError
from dpsynth_cli.spec.document import effective
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.rows.declared import declared_dataset


def as_declared(spec: Spec) -> Spec:
    """The spec with the data set that its input says it is; refuses a spec that names another."""
    children = spec.tables.children if spec.tables else ()
    for path in (spec.input, *(child.spec.input for child in children)):
        declared = declared_dataset(path)
        if declared is None or declared == spec.privacy.dataset:
            continue
        if "privacy.dataset" in spec.places or path != spec.input:
            raise other_dataset(path, declared, spec)
        changed = replace(spec, privacy=replace(spec.privacy, dataset=declared))
        spec = replace(changed, effective=effective(changed))
    return spec


def other_dataset(path: str, declared: str, spec: Spec, cost: str = NOTHING_SPENT) -> BudgetError:
    at = spec.places.get("privacy.dataset", "privacy.dataset")
    return BudgetError(
        f"{at}: {path} says that it is the data set {declared}, and this would charge "
        f"{spec.privacy.dataset}.",
        cost,
        f"Name the data set as its steward did: dataset: {declared}",
    )


def unlimited(ledger: Ledger, dataset: str) -> str | None:
    """A word of warning where a data set without a grant is released beside others that have one."""
    try:
        if ledger.balance(dataset).grant is not None:
            return None
        granted = [name for name in ledger.datasets() if ledger.own_balance(name).grant is not None]
    except DpsynthError:
        return None
    if not granted:
        return None
    few = ", ".join(granted[:3]) + (" and others" if len(granted) > 3 else "")
    return (
        f"warning: {dataset} has no grant, and is not limited; {few} has one in this ledger. If these are "
        "the same rows under another name, set privacy.dataset. Never without a grant: dpsynth budget policy "
        "--require-grant"
    )
