"""Reading `tables`: each table as a spec of its own, with the keys that all of them share; then what concerns
several of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpsynth_cli.spec.columns import COLUMNS, DEFAULTS
from dpsynth_cli.spec.paths import OUTPUT
from dpsynth_cli.spec.reader import Reader, did_you_mean, listed
from dpsynth_cli.spec.tables import (
    CHILDREN,
    FOREIGN_KEY,
    KEY,
    MECHANISM,
    ORDER,
    OWN,
    PARENT,
    SHARED,
    SIBLINGS,
    TABLES,
    Child,
    Tables,
)  # fmt: skip
from dpsynth_cli.spec.yaml_nodes import Entry, Keys, Mistake, Scalar, dotted

if TYPE_CHECKING:
    from dpsynth_cli.spec.spec import Spec

ReadSpec = Callable[[Keys, list[Mistake]], "Spec | None"]


def read_tables(tree: Keys, mistakes: list[Mistake], read: ReadSpec) -> Spec | None:
    """The spec of the parents, with the tables of children; `read` makes a spec of one table's keys."""
    tree = _with_output(tree)
    document = Reader(tree, "", mistakes)
    section = document.section(replace(TABLES, required=True))
    known = (*SHARED, "rows", "csv", DEFAULTS.name, TABLES.name)
    for name in tree.entries:
        if name in OWN and name not in known:
            document.note(name, "is stated beside tables; state it in each of the tables")
        elif name not in known:
            document.note(
                name, f"is not a known key{did_you_mean(name, known)}; the keys here are {listed(known)}"
            )
    privacy = tree.entries.get("privacy")
    if privacy is not None and isinstance(privacy.node, Keys) and "unit" in privacy.node.entries:
        document.note(
            "privacy", "has a unit, but of several tables it is a parent with its children; leave it out"
        )
    heads, asked = dict[str, dict[str, Any]](), dict[str, Keys]()
    for name, entry in section.keys.entries.items():
        if not isinstance(entry.node, Keys):
            section.note(name, "has no keys; it must be a table, with input, output and columns")
            continue
        child = PARENT.name in entry.node.entries
        own = Reader(Keys(entry.node.entries, entry.place), dotted("tables", name), mistakes)
        needed = (PARENT, FOREIGN_KEY, CHILDREN) if child else (KEY,)
        heads[name] = own.values(replace(key, required=True) for key in needed)
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
            path = f"{dotted('tables', name)}.{mistake.path}" if inside else mistake.path
            mistake = replace(mistake, path=path)
            if mistake not in mistakes:
                mistakes.append(mistake)
    for name, spec in specs.items():
        for fault in _for_one_table(spec) if spec is not None else ():
            section.note(name, fault)
    children = tuple(
        Child(
            name,
            _called(spec, name),
            *(heads[name][key.name] for key in (FOREIGN_KEY, CHILDREN, ORDER, SIBLINGS)),
        )
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


def _for_one_table(spec: Spec) -> list[str]:
    """What only a release of one table looks for, in words."""
    faults = []
    if open_ := [column.name for column in spec.domain if column.open]:
        faults.append(
            f"looks for labels of {listed(open_)} that nobody has listed, which a release of one table does; "
            "state candidates"
        )
    if spec.stated.looked_up:
        faults.append(
            "has private tables in rules.determines, which a release of one table finds; state them"
        )
    return faults


def beside(output: str, table: str) -> str:
    """The file of a table of children, beside that of the parents and in its format.

    >>> beside("out/more.csv", "members")
    'out/more.members.csv'
    """
    stem, ending = os.path.splitext(output)
    return f"{stem}.{table}{ending}"


def _with_output(tree: Keys) -> Keys:
    """An output on the command line is that of the parents; their children go beside it."""
    output, tables = tree.entries.get(OUTPUT.name), tree.entries[TABLES.name].node
    given = output is not None and output.place.line is None and isinstance(output.node, Scalar)
    if not given or not isinstance(tables, Keys) or output is None or not isinstance(output.node, Scalar):
        return tree
    named = dict[str, Entry]()
    for name, entry in tables.entries.items():
        if isinstance(entry.node, Keys):
            path = output.node.text
            path = beside(path, name) if PARENT.name in entry.node.entries else path
            own = {OUTPUT.name: Entry(output.place, Scalar(path, output.place, quoted=True))}
            entry = Entry(entry.place, Keys(entry.node.entries | own, entry.node.place))
        named[name] = entry
    rest = {key: entry for key, entry in tree.entries.items() if key != OUTPUT.name}
    return Keys(
        rest | {TABLES.name: Entry(tree.entries[TABLES.name].place, Keys(named, tables.place))}, tree.place
    )


def _called(spec: Spec, table: str) -> Spec:
    """The same, as one of several tables; what is searched for is asked of one child of each parent."""
    return replace(spec, domain=replace(spec.domain, table=table, unit_rows=1))


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
        section.note(
            name, f"names no parent, and neither does {parents[0]}; one table is the parent of all others"
        )
    for name, head in heads.items():
        if KEY.name in head or (parents and head[PARENT.name] == parents[0]):
            continue
        right = False
        above = head[PARENT.name]
        if not parents:
            why = "no table is without one"
        elif above in heads:
            why = (
                f"{above} has a parent itself, and rows of {name} do not say which row of {parents[0]} "
                "they are part of; give them its key, and that as their parent"
            )
        else:
            why = f"it must be {parents[0]}{did_you_mean(above, parents)}"
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
    for name, spec in specs.items():
        for column in (column.name for column in spec.domain if column.open):
            section.note(name, f"has labels of {column} that nobody has listed; list them, or candidates")
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
        asked = child.of_child(child.spec.domain, tables.of_parents(main.domain))
        reserved = {column.name for column in asked if column.origin is not None}
        for name in sorted(reserved & set(own)):
            section.note(child.name, f"has a column {name}, which would mean something else here; rename it")
