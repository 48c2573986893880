"""Rules that contradict each other, named before anything is read; and a possible row where they do not."""

from __future__ import annotations

from dpsynth_cli.domain import Domain
from dpsynth_cli.relations.keeping import Keeper
from dpsynth_cli.relations.possible import Found, possible_row
from dpsynth_cli.relations.relations import Relations

MOST_TRIED = 40  # rules, of which it is found out whether they are a part of a contradiction


def keeper_of(relations: Relations, omega: Domain) -> tuple[Keeper, list[str]]:
    """What makes rows keep the rules; and where rules leave no row, in all or of a class, sentences."""
    if not relations.kept:
        return Keeper(relations, omega, {}), []
    problems: list[str] = []
    named = {name for columns, _ in relations.groups() for name in columns}
    by_class = omega.strata is not None and omega.strata in named
    rows: dict[int, dict[str, int]] = {}
    for k in range(omega.classes if by_class else 1):
        fixed = {omega.strata: k} if by_class and omega.strata else {}
        found = possible_row(relations, omega, fixed)
        if found.row is None:
            problems.append(_no_row(relations, omega, fixed, found))
            break
        rows[k] = found.row
    if not by_class and rows:
        rows = dict.fromkeys(range(omega.classes), rows[0])
    return Keeper(relations, omega, rows), problems


def _no_row(relations: Relations, omega: Domain, fixed: dict[str, int], found: Found) -> str:
    """That there is no row, and which rules are enough for that."""
    where = ""
    for name, code in fixed.items():
        column = omega[name]
        where = f" with {'a missing' if code >= column.size else column.categories[code]} {name}"
    if not found.surely:
        return (
            f"rules: no row{where} was found that keeps all of them, and it could not be shown that there is "
            "none; state fewer or simpler ones, or compute a column by `derive`"
        )
    needed = list(relations.kept)
    for rule in relations.kept[:MOST_TRIED]:
        fewer = Relations(relations.computed, tuple(other for other in needed if other is not rule))
        left = possible_row(fewer, omega, fixed)
        if left.row is None and left.surely:
            needed.remove(rule)
    said = ", ".join(f"`{rule.words[:60]}`" for rule in needed[:5])
    one = "rule" if len(needed) == 1 else "rules"
    leave = "leaves" if len(needed) == 1 else "leave"
    return f"the {one} {said} {leave} no row{where}: drop one, or widen what is declared"
