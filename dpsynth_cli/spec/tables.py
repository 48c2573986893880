"""`tables`: a table of parents, and tables of their children that belong to them by a foreign key.

Each table is read as a spec of its own, with the keys that all of them share: the parents as one whose unit is
a row with its key, the children as one whose unit is their parent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.spec.columns import COLUMNS, DEFAULTS
from dpsynth_cli.spec.keys import Key, Kind, Section
from dpsynth_cli.spec.kinds import LINE, SCALARS, items, text, whole
from dpsynth_cli.spec.paths import INPUT, OUTPUT
from dpsynth_cli.spec.reader import Reader, Wrong, did_you_mean, listed
from dpsynth_cli.spec.relation_keys import DERIVE, RULES
from dpsynth_cli.spec.yaml_nodes import Entry, Keys, Mistake, Node, Scalar, dotted

if TYPE_CHECKING:
    from dpsynth_cli.spec.spec import Spec

MOST_CHILDREN = 1000
SEVERAL = 64  # children; up to so many each number is a cell of its own
MECHANISM = "joint"  # the only one that draws rows given columns that are known
_NAME = "the name of a column of the input, such as household_id"
_ROWS = whole(f"a whole number from 1 to {MOST_CHILDREN}", 1, MOST_CHILDREN)


def _names(node: Node) -> tuple[str, ...]:
    line = text("names of declared columns")
    found = tuple(line.read(one) for one in items(node, "a list of declared columns, such as [age]"))
    if len(set(found)) < len(found):
        raise Wrong("a list that names each column once")
    return found


_LIST = {"type": "array", "items": {"type": SCALARS, "pattern": LINE}, "uniqueItems": True}
KEY = Key("key", text(_NAME), "of the parents: the column that their children name. It is read, never "
          "modelled; in the release it is 1, 2, 3, ...")  # fmt: skip
PARENT = Key("parent", text("the name of the table of parents"), "the table that rows of this one belong to")
FOREIGN_KEY = Key("foreign_key", text(_NAME), "the column that names the parent's key. In the release it does, "
                  "always")  # fmt: skip
CHILDREN = Key("rows", _ROWS, "how many children of a parent are kept at most, chosen by a secret key and by "
               "the parent's own children; noise is for that many")  # fmt: skip
ORDER = Key(
    "order",
    Kind(_names, _LIST, list),
    "how the children of a parent are sorted, such as `[relation, -age]` (with a minus: the largest first); "
    "each depends on the one before it. Default: in any order",
    default=(),
)
SIBLINGS = Key(
    "siblings",
    Kind(_names, _LIST, lambda names: None if names is None else list(names)),
    "the columns of the child before it that a child may depend on; default: all; `[]`: none",
)
SHARED = ("dpsynth", "name", "rows_hint", "privacy", "mechanism", "sampling", "evaluate", "strict")
OWN = (INPUT.name, OUTPUT.name, DEFAULTS.name, COLUMNS.name, DERIVE.name, RULES.name, "csv")
TABLES = Section(
    "tables",
    (),
    "in place of `input`, `output` and `columns`: a table of parents, and tables of their children",
    such_as="{households: {...}, members: {parent: households, ...}}",
    of=lambda spec: None,
    write=lambda _: {},
)


@dataclass(frozen=True)
class Child:
    """A table of children: its own spec, whose unit is the parent, and what it depends on."""

    name: str
    spec: Spec
    foreign_key: str
    rows: int
    order: tuple[str, ...]
    siblings: tuple[str, ...] | None

    @property
    def sorted_by(self) -> tuple[tuple[str, bool], ...]:
        """The columns that children are sorted by, and whether the largest is first."""
        declared = {column.name for column in self.spec.declared}
        return tuple(
            (name, False) if name in declared else (name.removeprefix("-"), True) for name in self.order
        )

    def of_child(self, own: Domain, parents: Domain) -> Domain:
        """What questions about children are about: their own columns, those of their parents, of the child
        before, how many they are, and which of them it is."""
        known = self.siblings if self.siblings is not None else tuple(column.name for column in own)
        columns = [
            *own.columns,
            *(_of_parent(column, parents.table) for column in parents),
            *(_before(own[name]) for name in known if name in {column.name for column in own}),
            _count("place", self.rows, 1, ("place", "")),
        ]
        return replace(own, columns=tuple(columns))


@dataclass(frozen=True)
class Tables:
    """The name of the parents' table, its key, and the tables of children."""

    parent: str
    key: str
    children: tuple[Child, ...]

    def of_parents(self, domain: Domain) -> Domain:
        """The parents' columns, and how many children they have."""
        numbers = [
            _count(f"number of {child.name}", child.rows, 0, ("number", child.name))
            for child in self.children
        ]
        return replace(domain, columns=(*domain.columns, *numbers), table=self.parent)


def _count(name: str, most: int, least: int, origin: tuple[str, str]) -> Column:
    """A small number: each a category of its own where they are few."""
    if most <= SEVERAL:
        labels = tuple(map(str, range(least, most + 1)))
        return Column(name, "ordinal", categories=labels, origin=origin)
    return Column(name, "integer", lower=least, upper=most, origin=origin)


def _of_parent(column: Column, parent: str) -> Column:
    origin = column.origin or ("parent", column.name)
    return replace(column, name=f"{parent}.{column.name}", origin=origin, private=False, sought=None)


def _before(column: Column) -> Column:
    return replace(
        column, name=f"previous.{column.name}", origin=("previous", column.name), nullable=True, other=None
    )


ReadSpec = Callable[[Keys, list[Mistake]], "Spec | None"]


def read_tables(tree: Keys, mistakes: list[Mistake], read: ReadSpec) -> Spec | None:
    """The spec of the parents, with the tables of children; `read` makes a spec of one table's keys."""
    document = Reader(tree, "", mistakes)
    section = document.section(replace(TABLES, required=True))
    known = (*SHARED, "rows", "csv", DEFAULTS.name, TABLES.name)
    for name in tree.entries:
        if name in OWN and name not in known:
            document.note(name, "is stated beside tables; state it in each of the tables")
        elif name not in known:
            document.note(name, f"is not a known key{did_you_mean(name, known)}; the keys here are {listed(known)}")
    privacy = tree.entries.get("privacy")
    if privacy is not None and isinstance(privacy.node, Keys) and "unit" in privacy.node.entries:
        document.note("privacy", "has a unit, but of several tables it is a parent with its children; leave it out")
    heads, asked = dict[str, dict[str, Any]](), dict[str, Keys]()
    for name, entry in section.keys.entries.items():
        if not isinstance(entry.node, Keys):
            section.note(name, "has no keys; it must be a table, with input, output and columns")
            continue
        child = PARENT.name in entry.node.entries
        own = Reader(Keys(entry.node.entries, entry.place), dotted("tables", name), mistakes)
        keys = (PARENT, FOREIGN_KEY, CHILDREN) if child else (KEY,)
        heads[name] = own.values(replace(key, required=True) for key in keys)
        heads[name] |= own.values((ORDER, SIBLINGS) if child else ())
        own.known += OWN
        own.finish()
        asked[name] = entry.node
    if mistakes or not _family(section, heads):
        return None
    parent = next(name for name, head in heads.items() if KEY.name in head)
    specs = {}
    for name, keys in asked.items():
        found: list[Mistake] = []
        specs[name] = read(_alone(tree, keys, heads[name], name == parent), found)
        for mistake in found:
            first = mistake.path.split(".")[0]
            inside = first in keys.entries and first not in ("rows",)
            path = dotted(dotted("tables", name), "") + mistake.path if inside else mistake.path
            mistake = replace(mistake, path=path)
            if mistake not in mistakes:
                mistakes.append(mistake)
    children = tuple(
        Child(name, _called(spec, name), *(heads[name][key.name] for key in (FOREIGN_KEY, CHILDREN, ORDER, SIBLINGS)))
        for name, spec in specs.items()
        if name != parent and spec is not None
    )
    main = specs[parent]
    if mistakes or main is None:
        return None
    tables = Tables(parent, heads[parent][KEY.name], children)
    _check(document, section, main, tables)
    if mistakes:
        return None
    return replace(main, tables=tables, domain=tables.of_parents(main.domain))


def _called(spec: Spec, table: str) -> Spec:
    return replace(spec, domain=replace(spec.domain, table=table))


def _family(section: Reader, heads: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether there is one table of parents, and the others are its children."""
    parents = [name for name, head in heads.items() if KEY.name in head]
    right = len(heads) > 1
    if not right:
        section.mistakes.append(
            Mistake(section.keys.place, "tables", "has one table; it needs parents and their children")
        )
    for name in parents[1:]:
        right = False
        section.note(name, f"names no parent, and neither does {parents[0]}; one table is the parent of all others")
    for name, head in heads.items():
        if KEY.name in head or (parents and head[PARENT.name] == parents[0]):
            continue
        right = False
        above = head[PARENT.name]
        why = f"it must be {parents[0]}{did_you_mean(above, parents)}" if parents else "no table is without one"
        if above in heads and above not in parents:
            why = (
                f"{above} has a parent itself, and a row of {name} does not say which household it is part of; "
                f"give it the key of {parents[0]}, and that as its parent" if parents else why
            )
        section.note(name, f"has the parent {above}; {why}")
    return right and bool(parents)


def _alone(tree: Keys, keys: Keys, head: Mapping[str, Any], parent: bool) -> Keys:
    """The document of one table: what all share, its own, and its unit."""
    shared = (*SHARED, DEFAULTS.name, "csv", *(("rows",) if parent else ()))
    skipped = () if parent else ("rows_hint",)
    entries = {name: tree.entries[name] for name in shared if name in tree.entries and name not in skipped}
    entries |= {name: entry for name, entry in keys.entries.items() if name in OWN}
    column, rows = (head[KEY.name], 1) if parent else (head[FOREIGN_KEY.name], head[CHILDREN.name])
    place = keys.place
    unit = {"column": Scalar(column, place, quoted=True), "rows": Scalar(str(rows), place)}
    privacy = tree.entries.get("privacy")
    if privacy is not None and isinstance(privacy.node, Keys):
        inside = Keys({name: Entry(place, node) for name, node in unit.items()}, place)
        both = privacy.node.entries | {"unit": Entry(privacy.place, inside)}
        entries["privacy"] = Entry(privacy.place, Keys(both, privacy.node.place))
    columns = entries.get(COLUMNS.name)
    if columns is not None and isinstance(columns.node, Keys) and column not in columns.node.entries:
        fresh = Entry(place, Keys({"key": Entry(place, Scalar("true", place))}, place))
        entries[COLUMNS.name] = Entry(
            columns.place, Keys({column: fresh} | columns.node.entries, columns.node.place)
        )
    return Keys(entries, place)


def _check(document: Reader, section: Reader, main: Spec, tables: Tables) -> None:
    """Note what does not go with several tables, and what concerns several of them."""
    if main.mechanism.name != MECHANISM:
        document.note("mechanism", f"is {main.mechanism.name}; several tables need {MECHANISM}")
    if main.domain.strata:
        document.note("mechanism", "has strata, which several tables cannot have; leave them out")
    if main.evaluation.epsilon is not None:
        document.note("evaluate", "has an epsilon, which several tables cannot have; leave it out")
    specs = {tables.parent: main} | {child.name: child.spec for child in tables.children}
    folder = os.path.dirname(os.path.abspath(main.output))
    taken: dict[str, str] = {}
    for name, spec in specs.items():
        if "-" in (spec.output, spec.input):
            section.note(name, "has standard input or output; each of several tables must be a file")
        elif spec.dated:
            section.note(name, "has {date} in its output, which several tables cannot have; leave it out")
        elif os.path.dirname(os.path.abspath(spec.output)) != folder:
            section.note(name, f"has its output in another folder than {tables.parent}; all must be in one")
        stem = os.path.splitext(os.path.basename(spec.output))[0]
        if stem in taken:
            section.note(name, f"has an output of the same name as {taken[stem]}; each must have its own")
        taken[stem] = name
    reserved = {f"number of {child.name}" for child in tables.children}
    for name in sorted(reserved & {column.name for column in main.declared}):
        section.note(tables.parent, f"has a column {name}, which would mean something else here; rename it")
    for child in tables.children:
        own = [column.name for column in child.spec.declared]
        modelled = {column.name for column in child.spec.domain}
        for key, names in ((ORDER, [name for name, _ in child.sorted_by]), (SIBLINGS, child.siblings or ())):
            for name in names:
                if name not in modelled:
                    hint = did_you_mean(name, own)
                    section.note(child.name, f"has {name} in {key.name}, which is no modelled column{hint}")
        reserved = {column.name for column in child.of_child(child.spec.domain, tables.of_parents(main.domain))}
        for name in sorted(reserved - modelled & set(own)):
            section.note(child.name, f"has a column {name}, which would mean something else here; rename it")


def tables_document(
    spec: Spec, tables: Tables, one: Callable[[Spec], dict[str, Any]]
) -> dict[str, Any]:
    """The effective document: what all share, and each table's own keys, in their order."""
    documents = {tables.parent: one(spec)} | {child.name: one(child.spec) for child in tables.children}
    main = documents[tables.parent]
    shared = {name: main[name] for name in (*SHARED, "rows") if name in main}
    shared["privacy"] = {name: value for name, value in main["privacy"].items() if name != "unit"}
    heads: dict[str, dict[str, Any]] = {tables.parent: {KEY.name: tables.key}}
    for child in tables.children:
        heads[child.name] = {
            PARENT.name: tables.parent,
            FOREIGN_KEY.name: child.foreign_key,
            CHILDREN.name: child.rows,
            ORDER.name: list(child.order),
            SIBLINGS.name: SIBLINGS.kind.write(child.siblings),
        }
    listed_ = [
        {"name": name} | heads[name] | {key: document[key] for key in OWN if key in document}
        for name, document in documents.items()
    ]
    return shared | {TABLES.name: listed_}
