"""The spec: a YAML document, strict, frozen, versioned.

Everything is checked before a byte of data is read, and all mistakes are reported at once, each with
its key, its line, its value, what is allowed, and for a misspelt word the nearest right one.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpsynth_cli.domain import Column, CsvOptions, Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.fillers import Filler, all_columns
from dpsynth_cli.mechanisms.determined import rest_of
from dpsynth_cli.mechanisms.registry import Mechanism, mechanisms
from dpsynth_cli.mechanisms.shared.rules import dead_ends
from dpsynth_cli.relations.contradictions import keeper_of
from dpsynth_cli.relations.keeping import Keeper
from dpsynth_cli.spec.column_checks import unwritable
from dpsynth_cli.spec.columns import read_columns
from dpsynth_cli.spec.document import (
    CSV,
    DPSYNTH,
    NAME,
    ROWS,
    ROWS_HINT,
    SAMPLING,
    SEED,
    STRICT,
    VERSION,
    by_name,
    effective,
    public_document,
    tables_of,
)
from dpsynth_cli.spec.evaluate import Evaluation, read_evaluation
from dpsynth_cli.spec.mechanism import MECHANISM, SPLIT, read_name, read_params, read_split, read_strata
from dpsynth_cli.spec.paths import INPUT, OUTPUT, dated_output, header_of, read_paths
from dpsynth_cli.spec.privacy import PRIVACY, Privacy, read_privacy
from dpsynth_cli.spec.reader import Reader
from dpsynth_cli.spec.relation_keys import DERIVE, RULES
from dpsynth_cli.spec.relations import Stated, read_relations
from dpsynth_cli.spec.search import depended_on, needs_stated, unsearchable
from dpsynth_cli.spec.source import override, parse_file, parse_text, set_key
from dpsynth_cli.spec.table_reading import read_tables
from dpsynth_cli.spec.tables import TABLES, Tables
from dpsynth_cli.spec.unit import restored_unit, with_unit_key
from dpsynth_cli.spec.unit_checks import check_units
from dpsynth_cli.spec.yaml_nodes import Keys, Mistake, Place, Scalar, from_json, places_of, shortened

__all__ = ["VERSION", "Privacy", "Spec", "from_document", "load_spec", "public_document"]


@dataclass(frozen=True)
class Spec:
    """A checked spec.

    `rows` is None for as many as the private total says. Paths are as to be opened from the current
    folder; `input` is empty where the document was a public one. `effective` is the document after
    overrides with its defaults filled in, exact numbers as text: `from_document` gives the same Spec.
    `domain` has the columns of the model; `declared` those of the section `columns`, and `stated.columns` all
    of the output, computed ones too. `keeper` makes rows keep the rules.
    `places` says where each key of the first two levels was written; `dated` is the output with {date} in it.
    Where there are `tables`, it is the spec of the parents, whose unit is a parent with its children.
    """

    name: str
    input: str
    output: str
    rows: int | None
    privacy: Privacy
    mechanism: Mechanism
    params: Any
    split: dict[str, float]
    domain: Domain
    declared: tuple[Column, ...]
    fillers: tuple[Filler, ...]
    stated: Stated
    keeper: Keeper = field(repr=False)
    seed: int | None
    csv: CsvOptions
    evaluation: Evaluation
    strict: bool
    effective: dict[str, Any]
    places: dict[str, str] = field(default_factory=dict, compare=False)
    dated: str = field(default="", compare=False)
    tables: Tables | None = None

    @property
    def made(self) -> tuple[Column, ...]:
        """The columns that are modelled, as the domain has them, and those that are computed, in order."""
        modelled = {column.name: column for column in self.domain}
        return tuple(modelled.get(column.name, column) for column in self.stated.columns)

    @property
    def written(self) -> tuple[tuple[Column, ...], tuple[Filler, ...]]:
        """The columns that a model draws, numbers of units too, and computed ones; and what is filled in."""
        return with_unit_key(self.made, self.fillers, self.unit_key)

    @property
    def released(self) -> Domain:
        """The columns of the output, computed ones, keys and constants too."""
        return replace(self.domain, columns=tuple(all_columns(self.made, self.fillers)))

    @property
    def sought(self) -> frozenset[str]:
        """The columns whose step is to be found: where that is stated; and for a mechanism that wants to
        know, where nothing is, unless a rule depends on the column."""
        named = depended_on(self.stated, self.domain.strata)
        wanted = self.mechanism.rounds and self.mechanism.private(self.params)
        return frozenset(
            column.name
            for column in self.domain
            if column.sought or (wanted and column.sought is None and column.name not in named)
        )

    @property
    def unit_key(self) -> Filler | None:
        """The column of numbers of units, where the release has them."""
        return None if self.tables else restored_unit(self.privacy.unit, self.fillers)

    def found(self, domain: Domain) -> Spec:
        """The same, with what was found of its private columns; the document stays as it was written."""
        known = {column.name: column for column in domain}
        columns = tuple(known.get(column.name, column) for column in self.stated.columns)
        stated, keeper = replace(self.stated, columns=columns), replace(self.keeper, omega=domain)
        return replace(self, domain=domain, stated=stated, keeper=keeper)


def load_spec(
    path: str,
    overrides: Sequence[str] = (),
    *,
    input: str | None = None,
    output: str | None = None,
    rows: str | int | None = None,
    drafted: str | None = None,
    registry: Mapping[str, Mechanism] | None = None,
) -> Spec:
    """The spec in a file, or on standard input (-), with what the command line overrides.

    `drafted` is its text where it is not in the file yet. All mistakes are in one UsageError.
    """
    if drafted is None:
        document, mistakes = parse_file(path)
    else:
        document, mistakes = parse_text(drafted.encode(), "the drafted spec")
    for setting in overrides:
        document = override(document, setting, mistakes)
    for key, value in (("input", input), ("output", output), ("rows", rows)):
        if value is not None:
            place = Place(f"--{key}")
            document = set_key(document, [key], Scalar(str(value), place, quoted=key != "rows"), place)
    folder = os.path.dirname(path)
    spec = _read(document, mistakes, folder, mechanisms() if registry is None else registry)
    if path == "-" and spec is not None and spec.input == "-":
        raise UsageError(
            "the spec and the table both want standard input.", next_step="Give one of them as a file."
        )
    if spec is None:
        again = "then release it again" if drafted else f"then: dpsynth check {shlex.quote(path)}"
        raise _refusal(mistakes, f"Correct this, {again}")
    return spec


def from_document(
    document: Any,
    called: str = "the recorded spec",
    next_step: str = "It was edited, or comes from another version of dpsynth.",
    *,
    registry: Mapping[str, Mechanism] | None = None,
) -> Spec:
    """The Spec of an effective or public document, as an audit or a transcript records it, or of a dictionary
    with the keys of a file; `called` is what mistakes call it."""
    tree = from_json(by_name(document), Place(called))
    if not isinstance(tree, Keys):
        raise UsageError(f"{called} is not a spec.")
    mistakes: list[Mistake] = []
    public = not any("input" in keys for keys in (tree.entries, *tables_of(document)))
    written_out = isinstance(document, dict) and isinstance(document.get("columns"), list)
    written_out |= isinstance(document, dict) and isinstance(document.get(TABLES.name), list)
    known = mechanisms() if registry is None else registry
    spec = _read(tree, mistakes, "", known, public, patterns=not written_out)
    if spec is None:
        raise _refusal(mistakes, next_step)
    return spec


def _refusal(mistakes: list[Mistake], next_step: str) -> UsageError:
    in_order = sorted(mistakes, key=lambda mistake: (mistake.place.line is None, mistake.place.line or 0))
    return UsageError("\n".join(map(str, in_order)), next_step=next_step)


def _read(
    tree: Keys,
    mistakes: list[Mistake],
    folder: str,
    registry: Mapping[str, Mechanism],
    public: bool = False,
    patterns: bool = True,
) -> Spec | None:
    """The Spec that a document says, or None where there are mistakes."""
    if TABLES.name in tree.entries:
        found = read_tables(
            tree, mistakes, lambda one, noted: _read(one, noted, folder, registry, public, patterns)
        )
        return None if found is None else replace(found, effective=effective(found))
    document = Reader(tree, "", mistakes)
    document.value(DPSYNTH)
    name = document.value(NAME)
    document.expect(INPUT, OUTPUT)  # read below, as privacy is, when it is known what the mechanism needs
    rows, rows_hint = document.value(ROWS), document.value(ROWS_HINT)
    document.expect(PRIVACY)

    section = document.section(CSV)
    csv = CsvOptions(**section.values(CSV.keys))
    section.finish()

    def header() -> Sequence[str]:
        return header_of(document, folder, csv)

    declared, fillers = read_columns(document, header if patterns else None)
    if text := unwritable(all_columns(declared, fillers), csv):
        document.note(CSV.name, f"has encoding {csv.encoding}, which cannot write {shortened(text)}")
    stated = read_relations(document, declared)
    columns = stated.modelled
    if declared and not columns:
        document.note("derive", "leaves no column to model; what is computed needs one to start from")
    section = document.section(MECHANISM)
    mechanism = read_name(section, registry)
    strata = read_strata(section, columns)
    params, split, named_at, private = None, dict[str, float](), Place(""), True
    if mechanism is not None:
        named_at = section.keys.entries["name"].place
        params = mechanism.params(**read_params(section, mechanism))
        private = mechanism.private(params)
        if private:
            split = read_split(section, mechanism)
        else:
            section.unused(SPLIT)
        section.finish()
    privacy = read_privacy(document, name, private, columns)
    check_units(document, privacy.unit, declared, fillers, stated, mechanism, strata)
    streams = mechanism is not None and mechanism.stream
    source, output = read_paths(document, folder, needs_input=not (public or streams))

    section = document.section(SAMPLING)
    seed = section.value(SEED)
    if not private:
        section.unused(SEED)
        document.unused(ROWS_HINT, DERIVE, RULES)
    section.finish()
    evaluation = read_evaluation(document, columns, strata, privacy.epsilon, privacy.share_of_search)
    strict = document.value(STRICT)
    document.finish()

    unit = privacy.unit
    domain = Domain(
        columns,
        privacy.neighbours,
        rows_hint,
        strata,
        stated.impossible,
        unit.rows if unit else None,
        unit.order if unit else None,
    )
    shaky = ("", "the document", "columns", "mechanism", "rows_hint", "privacy", "privacy.neighbours")
    keeper = Keeper(stated.relations, domain, {})
    if mechanism and not any(
        m.path in shaky or m.path.startswith(("columns.", "mechanism.", "derive", "rules")) for m in mistakes
    ):
        unfit = mechanism.fits(rest_of(domain, stated.looked_up), params)
        mistakes += [Mistake(named_at, "", why) for why in unfit]
        keeper, none_left = keeper_of(stated.relations, domain)
        none_left += [
            f"rules.impossible leaves no row that has {said} in {name}; leave that out of the column's "
            "declaration, or drop a rule"
            for name, said in dead_ends(domain)
        ]
        at = tree.entries["rules"].place if "rules" in tree.entries else named_at
        mistakes += [Mistake(at, "", problem) for problem in none_left]
        ruled = [tree.entries[key].place for key in ("derive", "rules") if key in tree.entries]
        at = ruled[0] if needs_stated(stated, strata) and ruled else named_at
        mistakes += [Mistake(at, "", why) for why in unsearchable(mechanism, params, stated, strata)]
    if mistakes or mechanism is None:
        return None
    spec = Spec(
        name, source, output, rows, privacy, mechanism, params, split, domain, declared, fillers, stated,
        keeper, seed, csv, evaluation, strict, {},
        places_of(tree), dated_output(document, folder),
    )  # fmt: skip
    return replace(spec, effective=effective(spec))
