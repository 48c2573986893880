"""Tables that belong together: what follows from answers about parents, then about their children.

One budget, one bill, one transcript; a release and its verification come through here, as of one table
(`synthesis.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.inference.on_the_tin import what_is_known
from dpsynth_cli.mechanisms.search.find import Declare, Found, find
from dpsynth_cli.mechanisms.tables.families import Some, child_model, children, shares
from dpsynth_cli.questions import Ask, CellCounts, Cells, Model, Question
from dpsynth_cli.release.documents.audit import in_nine_digits
from dpsynth_cli.release.found import found_columns
from dpsynth_cli.release.parts import part_of
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.spec.tables import Child, Tables
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.prices import Charge

if TYPE_CHECKING:
    from dpsynth_cli.release.files.write import Pending


@dataclass(frozen=True)
class MadeTable:
    """A table of children: its spec with what was found, its model, what was asked about it, and of what."""

    child: Child
    spec: Spec
    model: Model
    found: Found
    charges: Sequence[Charge]
    asked: Domain = field(repr=False)


def run_tables(
    spec: Spec, ask: Ask, bill: Bill, declare: Declare
) -> tuple[Model, Found, tuple[MadeTable, ...]]:
    """The model of parents, then those of their children given them: each for a part of the budget."""
    tables = _tables(spec)
    parts = shares([len(spec.domain.columns), *(len(child.spec.domain.columns) for child in tables.children)])
    found, rest = _searched(spec, part_of(ask, parts[0]), declare)
    above = found.domain
    parents = spec.found(above)
    model = parents.keeper.model(spec.mechanism.run(rest, above, spec.params, spec.split))
    made = []
    for child, share in zip(tables.children, parts[1:], strict=True):
        before = len(bill.charges)
        own, rest = _searched(child.spec, part_of(ask, share), declare)
        omega, known = child.of_child(own.domain, above), child.spec.found(own.domain)
        declare(omega)
        some = Some.of(model, above, child.name)
        omega = replace(omega, unit_rows=some.asked(_variance(rest, omega), model.total, child.rows))
        declare(omega)
        given = child_model(rest, omega, above, spec.split, some)
        whole = children(model, given, omega, above, child.foreign_key, child.sorted_by)
        drawn = known.keeper.model(whole)
        made.append(MadeTable(child, known, drawn, own, bill.charges[before:], omega))
    return model, found, tuple(made)


def _variance(ask: Ask, omega: Domain) -> float:
    """Of a count about one child of each parent, with an average table's part of the budget."""
    own = sum(column.origin is None for column in omega)
    return ask.sd(Question("pairs", CellCounts(Cells(())), Fraction(1, 4 * own))) ** 2


def _searched(spec: Spec, ask: Ask, declare: Declare) -> tuple[Found, Ask]:
    """What is not known of a table's columns, and an `ask` for the rest of its part of the budget."""
    declare(spec.domain)
    found = find(ask, declare, spec.domain, spec.privacy.share_of_search, spec.sought)
    return found, ask if found.spent == 0 else part_of(ask, Fraction(1) - found.spent)


def joined_specs(spec: Spec, found: Domain, made: Sequence[MadeTable]) -> dict[str, Spec]:
    """The spec of every table with all that belongs to its rows: how many children parents have, and what
    children are given. The steward's figures are about these."""
    joined = {_tables(spec).parent: spec.found(found)}
    for one in made:
        domain = replace(one.asked, unit_rows=one.child.rows)
        joined[one.child.name] = replace(one.spec, domain=domain)
    return joined


def _tables(spec: Spec) -> Tables:
    assert spec.tables is not None
    return spec.tables


def about_children(made: Sequence[MadeTable], written: Mapping[str, Pending]) -> list[dict[str, Any]]:
    """What the public audit says of each table of children."""
    return [
        {
            "name": one.child.name,
            "parent": _parent_of(one),
            "foreign_key": one.child.foreign_key,
            "rows_of_a_parent": one.child.rows,
            "output": {
                "file": written[one.child.name].name,
                "rows": written[one.child.name].rows,
                "columns": [column.name for column in one.spec.released],
                "sha256": written[one.child.name].sha256,
            },
            "chosen": in_nine_digits(one.model.facts),
            "relations": what_is_known(
                [charge for charge in one.charges if charge.question.step != "domain"],
                [column.name for column in one.asked],
                one.model.total,
            ),
            **({"found": found_columns(one.found, one.charges)} if one.found.facts else {}),
        }
        for one in made
    ]


def _parent_of(one: MadeTable) -> str:
    """The name of the table above, by the names of the columns that come from there."""
    return next(
        column.name.split(".")[0] for column in one.asked if column.origin and column.origin[0] == "number"
    )


@dataclass
class Written:
    """The files of all tables, each whole and not yet under its name: in place together."""

    parents: Pending
    children: dict[str, Pending]

    @property
    def sha256(self) -> str:
        return self.parents.sha256

    @property
    def hashes(self) -> dict[str, str]:
        """Of the children's files, as the ledger records them."""
        return {f"output {one.name}": one.sha256 for one in self.children.values()}

    def publish(self, dated: float | None = None) -> None:
        """Children first: whoever sees the parents finds them."""
        for one in (*self.children.values(), self.parents):
            one.publish(dated)

    def discard(self) -> None:
        for one in (self.parents, *self.children.values()):
            one.discard()
