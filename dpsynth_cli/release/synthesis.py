"""What follows from answers alone: the model, the synthetic file and the public audit. No data.

A release and its verification come through here, so that they cannot differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth_cli import __version__, disk
from dpsynth_cli.bounds import Bound
from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError, VerificationError
from dpsynth_cli.hashing import sha256
from dpsynth_cli.inference.on_the_tin import what_is_known
from dpsynth_cli.mechanisms.determined import SHARE as DETERMINED
from dpsynth_cli.mechanisms.determined import rest_of, with_determined
from dpsynth_cli.mechanisms.search.find import Declare, Found, find
from dpsynth_cli.mechanisms.units.panels import with_order
from dpsynth_cli.mechanisms.units.restored import with_units
from dpsynth_cli.mechanisms.units.shares import of_units
from dpsynth_cli.questions import Answer, Ask, Block, Model, Progress, no_progress
from dpsynth_cli.release.budget import budget_of
from dpsynth_cli.release.documents import audit
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.release.found import found_columns
from dpsynth_cli.release.parts import part_of
from dpsynth_cli.release.tables import MadeTable, Written, about_children, run_tables
from dpsynth_cli.spec.spec import Spec, from_document
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill, TranscriptMismatch
from dpsynth_cli.trusted.core.prices import Charge

if TYPE_CHECKING:  # what reads and writes files takes long to import
    import pandas as pd

    from dpsynth_cli.evaluate.paid import Paid
    from dpsynth_cli.release.files.write import Pending
    from dpsynth_cli.release.record.transcript import Transcript

Watch = Callable[[Block], None]


def no_watch(block: Block) -> None:
    """Do not look."""


@dataclass(frozen=True)
class Outcome:
    """What a mechanism made of its answers and what they cost; what was found of private columns before; and
    a paid evaluation, if the spec has one, with its answers; and tables of children, if there are any."""

    model: Model
    accountant: Accountant
    charges: Sequence[Charge]
    found: Found
    paid: Paid | None = None
    answers: Sequence[Answer] = ()
    tables: Sequence[MadeTable] = ()


@dataclass(frozen=True)
class Receipt:
    """What a release gave: for people and for programs."""

    release_id: str
    rows: int
    files: dict[str, str]
    public: dict[str, Any] = field(repr=False)
    ledger: dict[str, Any]  # for the steward: the entry of the charge, and what remains
    problems: dict[str, Any] = field(
        default_factory=dict, repr=False
    )  # for the steward: cells not as declared
    continued: bool = False  # it was begun, and charged, before

    def table(self) -> pd.DataFrame:
        """The synthetic rows as a data frame, with the declared types."""
        if self.files["output"] == "-":
            raise UsageError("the rows went to standard output.", "", "Name a file as the output.")
        from dpsynth_cli.release.files.frame import read_frame

        made = from_document(self.public["spec"])
        return read_frame(self.files["output"], made.released, made.csv)

    def tables(self) -> dict[str, pd.DataFrame]:
        """The same of each of several tables, by its name, parents first."""
        from dpsynth_cli.release.files.frame import read_frames

        return read_frames(from_document(self.public["spec"]), self.files)


def run(
    spec: Spec,
    ask: Ask,
    bill: Bill,
    seed: int,
    most: int | None = None,
    declare: Declare = lambda omega: None,
) -> Outcome:
    """What the steward does not know of the columns, then the mechanism, then the paid evaluation: all ask
    through the same `ask`, out of one budget. `declare` is told what columns are from then on.

    The evaluation is about the synthetic rows, which follow from the model and the seed; where they are only
    imagined, about `most` of them.
    """

    def declared(omega: Domain) -> None:
        bill.declare(omega)
        declare(omega)

    try:
        if spec.tables is not None:
            model, found, tables = run_tables(spec, ask, bill, declared)
            return Outcome(model, bill.accountant, bill.charges, found, tables=tables)
        privacy = spec.privacy
        found = find(ask, declared, spec.domain, privacy.share_of_search, spec.sought, privacy.apart)
        spec, rest = spec.found(found.domain), 1 - found.spent
        if spec.evaluation.epsilon is None:
            model = _model(spec, ask, rest, found)
            return Outcome(model, bill.accountant, bill.charges, found)
        from dpsynth_cli.evaluate.paid import paid_questions
        from dpsynth_cli.release.paid import share_of

        share = share_of(spec, ask)
        model = _model(spec, ask, rest - share, found)
        rows = rows_of(spec, model) if most is None else min(most, rows_of(spec, model))

        def rows_again() -> Iterator[Block]:
            return model.draw(rows, np.random.default_rng(seed))

        paid = paid_questions(spec.domain, share, rows_again, rows, model.total)
        return Outcome(model, bill.accountant, bill.charges, found, paid, ask(paid.questions))
    except TranscriptMismatch:
        raise VerificationError(
            "the recorded answers do not fit what the mechanism asks: another version or spec made them.",
            "",
        ) from None


def _model(spec: Spec, ask: Ask, share: Fraction, found: Found) -> Model:
    """The mechanism's, for a share of the budget; of a part of that its rows have units again, of another the
    columns that others determine."""
    pairs = spec.stated.looked_up
    unit_share = share * of_units(spec.domain) if spec.unit_key else Fraction(0)
    table_share = share * DETERMINED if pairs else Fraction(0)
    share -= unit_share + table_share
    own, omega = ask if share == 1 else part_of(ask, share), rest_of(spec.domain, pairs)
    model = spec.keeper.model(spec.mechanism.run(own, omega, spec.params, spec.split))
    if spec.unit_key and omega.unit_order is not None:
        model = with_order(ask, omega, model, unit_share, spec.unit_key.name, spec.stated.bound)
    elif spec.unit_key:
        model = with_units(ask, omega, model, unit_share, spec.unit_key.name)
    if pairs:
        model = with_determined(ask, spec.domain, pairs, model, table_share)
    return replace(model, notes=(*found.notes, *model.notes))


def compose(
    spec: Spec,
    transcript: Transcript,
    outcome: Outcome,
    files: Files,
    progress: Progress = no_progress,
    watch: Watch = no_watch,
    watches: Mapping[str, Watch] | None = None,
) -> tuple[Pending | Written, dict[str, Any]]:
    """The synthetic file (not yet under its name) and the public audit: from public things alone.

    `watch` sees every block of synthetic codes as it is written; `watches` those of tables of children.
    """
    model = outcome.model
    rows = rows_of(spec, model)
    bounds = w1_bounds(spec, model, rows)
    spec = spec.found(outcome.found.domain)
    release_id, seed = transcript.header["release"]["id"], transcript.header["sampling_seed"]
    parents = draw(spec, model, rows, seed, files.path, progress, release_id, watch)
    children: dict[str, Pending] = {}
    for one, path in zip(outcome.tables, files.others, strict=True):
        seen = (watches or {}).get(one.child.name, no_watch)
        children[one.child.name] = draw(
            one.spec, one.model, rows, seed, str(path), progress, release_id, seen, None
        )
    pending = Written(parents, children) if children else parents
    output = {
        "file": files.output_name,
        "rows": rows,
        "columns": [column.name for column in spec.released],
        "sha256": parents.sha256,
    }
    data = transcript.as_bytes()
    public = audit.public_audit(
        spec,
        transcript.header,
        budget_of(outcome.accountant),
        [charge.as_json() for charge in outcome.charges],
        output,
        {"file": files.transcript.name, "sha256": sha256(data)},
        [*audit.few_rows(model.total, rows), *model.notes],
        model.facts,
        bounds,
    )
    names = [column.name for column in spec.domain]
    asked = [charge for charge in outcome.charges if charge.table == spec.domain.table]
    public["relations"] = what_is_known(asked, names, model.total)
    if children:
        public["tables"] = about_children(outcome.tables, children)
        public["warnings"] += [
            f"{one.child.name}: {note}" for one in outcome.tables for note in one.model.notes
        ]
    if outcome.found.facts:
        public["found"] = found_columns(outcome.found, outcome.charges)
    if outcome.paid is not None:
        from dpsynth_cli.evaluate.paid import paid_errors

        found = paid_errors(spec.domain, outcome.paid, outcome.answers, rows, model.total)
        public["evaluation"] = {"epsilon": transcript.header["spec"]["evaluate"]["epsilon"]} | found
    return pending, public


def rows_of(spec: Spec, model: Model) -> int:
    """How many synthetic rows there are: as many as the spec says, else the private total."""
    return max(0, model.total) if spec.rows is None else spec.rows


def draw(
    spec: Spec,
    model: Model,
    rows: int,
    seed: int,
    path: str,
    progress: Progress,
    tag: str | None = None,
    watch: Watch = no_watch,
    written: int | None = -1,
) -> Pending:
    """Rows from a model, in a temporary file beside `path`. Where `rows` are parents, how many children there
    are is not known before: `written` is None."""
    from dpsynth_cli.release.files.write import write_table

    progress("writing", 0, rows)

    def watched() -> Iterator[Block]:
        for block in model.draw(rows, np.random.default_rng(seed)):
            watch(block)
            yield block
            progress("writing", len(next(iter(block.values()))), rows)

    relations, (columns, fillers) = spec.stated.relations, spec.written
    count = rows if written == -1 else written
    return write_table(path, columns, watched(), count, tag, spec.csv, relations, fillers, seed)


def check_paid_for(bill: Sequence[Charge], answers: Sequence[tuple[Any, Answer]]) -> None:
    """Recorded answers have the noise that their shares pay for, and none is left over."""
    for charge, (_, answer) in zip(bill, answers, strict=False):
        if (answer.noise, answer.sd) != (charge.price.noise, charge.price.sd):
            raise VerificationError("the transcript claims other noise than its shares pay for.", "")
    if len(bill) != len(answers):
        raise VerificationError("the transcript has answers that the mechanism never asked for.", "")


def w1_bounds(spec: Spec, model: Model, rows: int) -> list[Bound]:
    """What the expected W1 is at most, of any data, as far as it is known: at pure epsilon whatever the
    answers are, and by the answers, for so many rows that are drawn."""
    moved = spec.privacy.unit is not None or any(column.private for column in spec.declared)
    if (
        moved or spec.stated.relations.kept or spec.stated.looked_up
    ):  # rows, bounds or rules that a bound knows nothing of
        return []
    found = [model.bound(rows)]
    if spec.privacy.delta is None and spec.evaluation.epsilon is None:
        epsilon, n = float(spec.privacy.budget), max(1.0, model.total)
        found.insert(0, spec.mechanism.bound(spec.domain, spec.params, spec.split, epsilon, n))
    return [bound for bound in found if bound is not None]


def about(spec: Spec, release_id: str) -> dict[str, Any]:
    """Which release it is, made when and by what."""
    return {"id": release_id, "name": spec.name, "day": disk.today(), "versions": versions()}


@cache
def versions() -> dict[str, str]:
    """What made a release: the same versions make the same bytes."""
    from importlib.metadata import version  # scipy itself takes long to import, and few need it

    return {
        "dpsynth": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        **{name: version(name) for name in ("numpy", "scipy", "pyarrow")},
    }
