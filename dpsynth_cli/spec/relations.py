"""The sections `derive` and `rules` of the spec: read into `Relations`, and refused where they contradict the
declared columns or each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dpsynth_cli.domain import Column, Impossible
from dpsynth_cli.labels import plain
from dpsynth_cli.mechanisms.determined import Pair
from dpsynth_cli.relations import impossible
from dpsynth_cli.relations.declared import as_declared, misfit
from dpsynth_cli.relations.facts import Typing
from dpsynth_cli.relations.kinds import column_of
from dpsynth_cli.relations.language import parse
from dpsynth_cli.relations.nodes import Expression, Name, names
from dpsynth_cli.relations.relations import Computed, Relations, Rule, declared_facts
from dpsynth_cli.relations.tables import lookup
from dpsynth_cli.spec.column_kinds import PRIVATE
from dpsynth_cli.spec.looked_up import unfit
from dpsynth_cli.spec.reader import Reader, did_you_mean
from dpsynth_cli.spec.relation_keys import DERIVE, RULES, TABLES
from dpsynth_cli.spec.yaml_nodes import Items, Keys, Mistake, Node, Place, Scalar, as_plain, dotted, shortened

T = TypeVar("T")


@dataclass(frozen=True)
class Stated:
    """What a spec states: the relations, which rows are impossible in codes, all columns of the output in
    order, and what was written."""

    relations: Relations = field(default_factory=Relations)
    impossible: tuple[Impossible, ...] = ()
    looked_up: tuple[Pair, ...] = ()  # by tables that are to be found
    columns: tuple[Column, ...] = ()
    derive: dict[str, Any] | None = None
    rules: dict[str, Any] | None = None

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns that are not computed."""
        computed = {one.column.name for one in self.relations.computed}
        return tuple(column for column in self.columns if column.name not in computed)

    @property
    def bound(self) -> frozenset[str]:
        """The columns of rules that are about two or more."""
        together = [set(names) for names, _ in self.relations.groups()]
        together += [set(one.columns) for one in self.impossible]
        return frozenset(name for names in together if len(names) > 1 for name in names)


@dataclass(frozen=True)
class _Wanted:
    """A column that is to be computed: by an expression, or by a table of it."""

    name: str
    place: Place
    path: str
    expression: Expression
    table: dict[str, str] | None = None
    otherwise: str | None = None


def read_relations(document: Reader, declared: tuple[Column, ...]) -> Stated:
    """What the two sections say; every mistake is noted at its own line."""
    derive: Keys | None = document.value(DERIVE)
    section = document.section(RULES)
    rules = section.values(RULES.keys)
    section.finish()
    return _Reading(document.mistakes, declared).stated(derive, rules)


class _Reading:
    """Reads one part after the other: what is computed is known to rules."""

    def __init__(self, mistakes: list[Mistake], declared: tuple[Column, ...]) -> None:
        self.mistakes, self.declared = mistakes, {column.name: column for column in declared}
        self.modelled: dict[str, Column] = {}
        self.typing = Typing({})
        self.in_codes: list[Impossible] = []
        self.as_declared: list[Rule] = []
        self.looked_up: list[tuple[Pair, Place]] = []

    def stated(self, derive: Keys | None, rules: dict[str, Any]) -> Stated:
        wanted = {one.name: one for one in [*self.derived(derive), *self.determined(rules["determines"])]}
        self.modelled = {name: column for name, column in self.declared.items() if name not in wanted}
        sound = all(column.type for column in self.modelled.values())
        self.typing = Typing(declared_facts(self.modelled.values()) if sound else {})
        computed = tuple(self.computed(wanted)) if sound else ()
        by_name = {one.column.name: one.column for one in computed}
        kept: list[Rule] = []
        missing_with: tuple[tuple[str, str], ...] = ()
        if sound and len(computed) == len(wanted):  # else what they name may not be known
            kept = [*self.as_declared, *self.always(rules["always"]), *self.impossible(rules["impossible"])]
            missing_with = tuple(self.missing_with(rules["missing_with"]))
            for place, path, problem in unfit(
                self.looked_up, self.modelled, Relations(computed, tuple(kept), missing_with), self.in_codes
            ):
                self.note(place, path, problem)
        written = {name: as_plain(node) for name, node in rules.items() if node is not None}
        return Stated(
            Relations(computed, tuple(kept), missing_with),
            tuple(self.in_codes),
            tuple(sorted(pair for pair, _ in self.looked_up)),  # recorded keys have no order
            tuple((self.declared | by_name).values()),
            None if derive is None else as_plain(derive),
            written or None,
        )

    def note(self, place: Place, path: str, problem: str) -> None:
        self.mistakes.append(Mistake(place, path, problem))

    def tried(
        self, place: Place, path: str, make: Callable[..., T], *given: Any, written: str = ""
    ) -> T | None:
        """What can be made of what is given; where it cannot, that is noted."""
        try:
            return make(*given)
        except ValueError as error:
            self.note(place, path, f"is {shortened(written)}; {error}" if written else str(error))
            return None

    # --- computed columns -----------------------------------------------------------------------------------

    def derived(self, derive: Keys | None) -> Iterator[_Wanted]:
        for name, (place, node) in derive.entries.items() if derive else ():
            path = dotted("derive", name)
            if not name or not plain(name):
                self.note(place, path, "is not a name for a column; it must be one line of text")
                continue
            table, otherwise, text = None, None, node
            if isinstance(node, Keys):
                parts = as_plain(node)
                table, otherwise = parts.get("table"), parts.get("else")
                known = set(parts) <= {"of", "table", "else"} and _is_table(table)
                if not known or not isinstance(otherwise, str | None) or "of" not in node.entries:
                    self.note(
                        place,
                        path,
                        "must be an expression, or {of: column, table: {key: value, …}, else: value}",
                    )
                    continue
                text = node.entries["of"].node
            expression = self.parsed(text, place, path)
            if expression is not None:
                yield _Wanted(name, place, path, expression, table, otherwise)

    def determined(self, determines: Keys | None) -> Iterator[_Wanted]:
        for one, (place, node) in determines.entries.items() if determines else ():
            path = dotted("rules.determines", one)
            if not isinstance(node, Keys) or not all(
                _is_table(table) or table == PRIVATE for table in as_plain(node).values()
            ):
                self.note(place, path, f"must be {TABLES}")
                continue
            for name, entry in node.entries.items():
                if name not in self.declared:
                    hint = did_you_mean(name, self.declared)
                    self.note(entry.place, dotted(path, name), f"is not a declared column{hint}")
                elif (table := as_plain(entry.node)) == PRIVATE:
                    self.looked_up.append(((one, name), entry.place))
                else:
                    yield _Wanted(name, entry.place, dotted(path, name), Name(one), table)

    def computed(self, wanted: dict[str, _Wanted]) -> Iterator[Computed]:
        """In an order in which everything is known when it is needed."""
        todo = dict(wanted)
        while todo:
            ready = [
                one for one in todo.values() if not any(name.name in todo for name in names(one.expression))
            ]
            if not ready:
                one = next(iter(todo.values()))
                self.note(one.place, one.path, "is computed from itself, directly or by others")
                return
            for one in ready:
                del todo[one.name]
                found = self.tried(one.place, one.path, self.column, one)
                if found is not None:
                    yield found
                    self.typing = Typing({**self.typing.columns, one.name: self.typing(found.expression)})

    def column(self, one: _Wanted) -> Computed:
        facts, declared = self.typing(one.expression), self.declared.get(one.name)
        expression = one.expression
        if one.table is not None:
            expression = lookup(expression, facts, one.table, one.otherwise, declared)
            facts = self.typing(expression)
        if declared is None and not facts.present:
            raise ValueError("is always missing")
        column = column_of(one.name, facts) if declared is None else declared
        if declared is not None and declared.type:
            if wrong := misfit(declared, facts):
                raise ValueError(wrong)
            self.as_declared += as_declared(declared, facts)
        return Computed(column, expression)

    def parsed(self, node: Node, place: Place, path: str) -> Expression | None:
        if not isinstance(node, Scalar) or node.null:
            self.note(place, path, "must be an expression")
            return None
        return self.tried(place, path, parse, node.text, written=node.text)

    # --- rules ----------------------------------------------------------------------------------------------

    def always(self, listed: Items | None) -> Iterator[Rule]:
        for node in listed.nodes if listed else ():
            expression = self.parsed(node, node.place, "rules.always")
            if expression is None or not isinstance(node, Scalar):
                continue
            facts = self.tried(node.place, "rules.always", self.typing, expression, written=node.text)
            if facts is None:
                continue
            if facts.kind != "boolean":
                self.note(
                    node.place,
                    "rules.always",
                    f"is {shortened(node.text)}; a rule is true or false, not {facts.in_words}",
                )
            elif not any(True for _ in names(expression)):
                self.note(node.place, "rules.always", f"is {shortened(node.text)}; a rule names a column")
            else:
                yield Rule(node.text, expression)

    def impossible(self, listed: Items | None) -> Iterator[Rule]:
        for number, node in enumerate(listed.nodes if listed else (), start=1):
            path = f"rules.impossible, rule {number}:"
            written = as_plain(node)
            rule = self.tried(node.place, path, impossible.checked, written)
            if rule is None:
                continue
            expression = self.tried(node.place, path, impossible.expression, rule, self.modelled)
            if expression is not None:
                codes = impossible.in_codes(rule, self.modelled)
                self.in_codes += [codes] if codes else []
                yield Rule(f"impossible: {_said(rule)}", expression)

    def missing_with(self, pairs: Keys | None) -> Iterator[tuple[str, str]]:
        stated = {
            name: (entry.place, as_plain(entry.node))
            for name, entry in (pairs.entries if pairs else {}).items()
        }
        for name, (place, other) in sorted(stated.items()):  # recorded keys have no order
            path = dotted("rules.missing_with", name)
            seen = [name]
            while other in stated and other not in seen:
                seen.append(other)
                other = stated[other][1]
            if other in seen:
                self.note(place, path, "leads back to itself; name a column that is not missing with another")
                continue
            for one in (name, other):
                column = self.modelled.get(one) if isinstance(one, str) else None
                if column is None:
                    self.note(
                        place,
                        path,
                        f"names {shortened(str(one))}, which is not a declared column that is modelled",
                    )
                    break
                if not column.nullable:
                    self.note(
                        place, path, f"names {one}, which is never missing; declare it with nullable: true"
                    )
                    break
            else:
                yield name, str(other)


def _is_table(table: Any) -> bool:
    return isinstance(table, dict) and bool(table) and all(isinstance(value, str) for value in table.values())


def _said(rule: Any) -> str:
    def side(value: Any) -> str:
        if isinstance(value, dict):
            return "missing" if "missing" in value else " ".join(f"{end} {at}" for end, at in value.items())
        return " or ".join(value) if isinstance(value, list) else str(value)

    return " with ".join(f"{name} {side(value)}" for name, value in sorted(rule.items()))
