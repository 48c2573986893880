"""`tables`: a table of parents, and tables of their children that belong to them by a foreign key.

Each table is read as a spec of its own (`table_reading.py`): the parents as one whose unit is a row with its
key, the children as one whose unit is their parent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.spec.columns import COLUMNS, DEFAULTS
from dpsynth_cli.spec.keys import Key, Kind, Schema, Section, object_schema
from dpsynth_cli.spec.kinds import LINE, SCALARS, items, text, whole
from dpsynth_cli.spec.paths import INPUT, OUTPUT
from dpsynth_cli.spec.reader import Wrong
from dpsynth_cli.spec.relation_keys import DERIVE, RULES
from dpsynth_cli.spec.yaml_nodes import Node

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
FOREIGN_KEY = Key("foreign_key", text(_NAME), "the column that names the parent's key; in the release it "
                  "always does")  # fmt: skip
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


def each_table(spec: Spec) -> dict[str, Spec]:
    """The spec of every table as it is in its file, by its name, the parents first; of a release of one table
    that one, without a name."""
    if spec.tables is None:
        return {"": spec}
    own = tuple(column for column in spec.domain if column.origin is None)
    parents = replace(spec, domain=replace(spec.domain, columns=own))
    return {spec.tables.parent: parents} | {child.name: child.spec for child in spec.tables.children}


def tables_schema() -> Schema:
    """The JSON Schema of the section: any names, each a table of parents or of children."""
    own = (INPUT, OUTPUT, DERIVE, RULES)
    kinds = []
    for keys in ((KEY,), (PARENT, FOREIGN_KEY, CHILDREN)):
        optional = (ORDER, SIBLINGS) if PARENT in keys else ()
        table = object_schema([*(replace(key, required=True) for key in keys), *optional, *own])
        same = (COLUMNS.name, DEFAULTS.name, "csv")  # as at the top
        table["properties"] |= {name: {"$ref": f"#/properties/{name}"} for name in same}
        table["required"] = [*table["required"], COLUMNS.name, INPUT.name]
        kinds.append(table)
    return {
        "description": TABLES.about,
        "type": "object",
        "minProperties": 2,
        "propertyNames": {"pattern": LINE},
        "additionalProperties": {"oneOf": kinds},
    }


def tables_document(spec: Spec, tables: Tables, one: Callable[[Spec], dict[str, Any]]) -> dict[str, Any]:
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
