"""What `privacy.unit` and `of: unit` do not go with: refused before a byte of data is read."""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth_cli.domain import Column
from dpsynth_cli.fillers import SEQUENCE, Filler
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.spec.columns import COLUMNS
from dpsynth_cli.spec.privacy import PRIVACY
from dpsynth_cli.spec.reader import Reader
from dpsynth_cli.spec.relations import Stated
from dpsynth_cli.spec.unit import LIFE, UNIT, ProtectedUnit, restored_unit
from dpsynth_cli.spec.yaml_nodes import dotted


def check_units(
    document: Reader,
    unit: ProtectedUnit | None,
    columns: Sequence[Column],
    fillers: Sequence[Filler],
    stated: Stated,
    mechanism: Mechanism | None,
    strata: str | None,
) -> None:
    """Note every mistake at its own line."""
    misread = _misread(document, unit)
    if unit is not None and not misread:
        faults = _unit_faults(unit, columns, fillers, mechanism)
        if unit.order is not None and not (mechanism is not None and mechanism.stream):
            faults += _order_faults(unit, unit.order, columns, fillers, stated, strata)
        for fault in faults:
            document.section(PRIVACY).note(UNIT.name, fault)
    restored = misread or restored_unit(unit, fillers) is not None or _noted(document)
    for name, fault in _of_unit_faults(columns, restored, stated):
        document.section(COLUMNS).note(name, f"is of: unit, which {fault}")


def _misread(document: Reader, unit: ProtectedUnit | None) -> bool:
    """Whether the unit, or its column, could not be read: what they would be is not known."""
    own = [PRIVACY.name] if unit is None else [dotted(COLUMNS.name, unit.column)]
    return _noted(document) or any(
        mistake.path == path or (unit is not None and mistake.path.startswith(f"{path}."))
        for mistake in document.mistakes
        for path in own
    )


def _noted(document: Reader) -> bool:
    """Whether something is known to be wrong with the unit."""
    path = dotted(PRIVACY.name, UNIT.name)
    return any(mistake.path.startswith(path) for mistake in document.mistakes)


def _unit_faults(
    unit: ProtectedUnit, columns: Sequence[Column], fillers: Sequence[Filler], mechanism: Mechanism | None
) -> list[str]:
    """What a unit does not go with, in words."""
    faults = []
    taken = {column.name for column in columns} | {one.name for one in fillers if one.key != SEQUENCE}
    if unit.column in taken:
        faults.append(
            f"names {unit.column}, which is declared in columns: an identifier is never modelled or "
            "released; leave it out there, or make it a fresh key: {key: true}"
        )
    streams = mechanism is not None and mechanism.stream
    if streams and restored_unit(unit, fillers) is not None:
        faults.append(
            f"names {unit.column}, which is a fresh key in columns, but snapshots of a stream have no units; "
            "leave it out there"
        )
    if streams and unit.order is not None:
        faults.append(f"has order: {unit.order}, which only a table has; leave it out")
    if mechanism is not None and not streams and unit.per != LIFE:
        faults.append(f"has per: {unit.per}, which only a stream has; leave it out")
    return faults


def _order_faults(
    unit: ProtectedUnit,
    order: str,
    columns: Sequence[Column],
    fillers: Sequence[Filler],
    stated: Stated,
    strata: str | None,
) -> list[str]:
    """Why rows of a unit cannot follow one another by this column, in words."""
    says = f"has order: {order}, which "
    if restored_unit(unit, fillers) is None:
        return [f"{says}needs {unit.column} in columns as a fresh key: {{key: true}}"]
    if unit.rows < 2:
        return [f"{says}needs two rows or more of a unit"]
    column = next((one for one in columns if one.name == order), None)
    if column is None:
        return [f"{says}is not declared in columns"]
    if column not in stated.modelled:
        return [f"{says}is computed from other columns; name one that is not"]
    wrong = {
        f"is {column.type}: time is a number, a date, a time or an ordinal column": column.type
        in ("nominal", "boolean"),
        "is nullable: a row without a time has no place": column.nullable,
        "is of: unit: time is a row's own": column.of == "unit",
        "is the label of the strata": order == strata,
        "is determined by another column": order in [determined for _, determined in stated.looked_up],
        "is in a rule with other columns, which rows in their order would break": order in stated.bound,
    }
    return [says + why for why, found in wrong.items() if found]


def _of_unit_faults(columns: Sequence[Column], restored: bool, stated: Stated) -> list[tuple[str, str]]:
    """Columns whose `of: unit` cannot be kept, and why: without numbers of units there is nothing to keep,
    and rules of a row would be broken where part of it is its unit's."""
    own = [column.name for column in columns if column.of == "unit"]
    if own and not restored:
        return [
            (name, "needs privacy.unit, and its column in columns as a fresh key: {key: true}")
            for name in own
        ]
    relations = stated.relations
    sources = {one.column.name: set(relations.modelled(one.expression)) for one in relations.computed}
    if strange := [name for name in own if not sources.get(name, set()) <= set(own)]:
        return [(name, "is computed from columns that are not") for name in strange]
    pairs = [set(one.columns) for one in stated.impossible]
    together = [*(set(names) for names, _ in relations.groups()), *pairs]
    mixed = set[str]().union(*(names for names in together if 0 < len(names & set(own)) < len(names)))
    return [
        (name, "is in a rule with columns that are not: a rule may be of columns of a unit, or of others")
        for name in own
        if name in mixed
    ]
