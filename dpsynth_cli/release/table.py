"""The main path: spec -> charge -> answers -> model -> files."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.utility import SAMPLE_ROWS, utility
from dpsynth_cli.mechanisms.search.outer import outer
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.documents import audit
from dpsynth_cli.release.documents.junk import for_the_steward, refuse_junk
from dpsynth_cli.release.files.publish import Files, publish
from dpsynth_cli.release.files.replaced import check_free
from dpsynth_cli.release.record.again import of_its_day, refuse_begun
from dpsynth_cli.release.record.journal import Journal, closing_on_failure, refunding
from dpsynth_cli.release.record.unfinished import Request
from dpsynth_cli.release.synthesis import Receipt, compose, run
from dpsynth_cli.release.tables import Written, joined_specs
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.spec.tables import each_table
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import open_curator
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.engines.local import gather, sum_over
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.sample import Sample
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_marks import Units, unit_column
from dpsynth_cli.trusted.sums.passes import Passes
from dpsynth_cli.trusted.sums.table_passes import Source, TablePasses

if TYPE_CHECKING:
    from dpsynth_cli.release.files.write import Pending

Measured: TypeAlias = "tuple[Mapping[str, Any] | None, dict[str, Any]]"


def release(
    spec: Spec,
    ledger: Ledger,
    progress: Progress = no_progress,
    engine: Engine | None = None,
    request: Request | None = None,
) -> Receipt:
    """Spend the budget once: synthetic file, transcript, audits.

    The ledger holds the charge before the first row is read. Until then any failure gives it back;
    after that it stays spent, and the same command goes on with the answers already on the disk: same
    answers, same charge, nothing asked twice. A strict spec has the first rows looked at before the charge.
    """
    _check_whole(spec)
    accountant_of(spec)
    request = request or Request()
    spec = of_its_day(spec, ledger, request)
    files = Files.of(spec)
    files.check_writable()
    engine = engine or Engine(sum_over, watches=True, counts=True, gather=gather)
    _check_gathering(spec, engine)
    journal = Journal.going_on(spec, files, ledger, request)
    if journal is not None:
        with closing_on_failure(journal):  # --resume names the one that is meant
            check_free(files, request.replace or request.resume, journal.release_id)
        partial = files.partial(journal.release_id)
        with ExitStack() as last, refunding(spec, ledger, journal.release_id, partial):
            last.callback(journal.close)  # nobody else goes on with it before its charge is given back
            request.say(
                f"Going on with the release of {journal.day} that was cut off: it is paid for, and nothing "
                "is charged."
            )
            with closing(Inputs.of(spec)) as inputs:
                inputs.check(engine)
                receipt = _ask_and_publish(spec, ledger, files, inputs, journal, progress, engine)
            return replace(receipt, continued=True)
    check_free(files, request.replace)
    with closing(Inputs.of(spec)) as inputs:
        inputs.check(engine)
        for name, own in each_table(spec).items():
            refuse_junk(own, inputs.scans[name])
        release_id = secrets.token_hex(16)
        partial = files.partial(release_id)
        with ExitStack() as last, refunding(spec, ledger, release_id, partial, reserving=True):
            journal = _begun(spec, files, ledger, request, release_id)
            last.callback(journal.close)
            return _ask_and_publish(spec, ledger, files, inputs, journal, progress, engine)


@dataclass(frozen=True)
class Inputs:
    """The input of every table, with columns as they are asked first: private ones as wide as they may be."""

    scans: dict[str, Scan]

    @classmethod
    def of(cls, spec: Spec) -> Inputs:
        inputs = cls({})
        with ExitStack() as opened:
            opened.callback(inputs.close)
            for name, own in each_table(spec).items():
                unit = () if own.privacy.unit is None else (unit_column(own.privacy.unit.column),)
                inputs.scans[name] = open_scan(own.input, (*outer(own.domain).columns, *unit), own.csv)
            opened.pop_all()
        return inputs

    def check(self, engine: Engine) -> None:
        """Refuse what the engine cannot read."""
        for scan in self.scans.values():
            engine.check(scan)

    def close(self) -> None:
        for scan in self.scans.values():
            scan.close()


def _begun(spec: Spec, files: Files, ledger: Ledger, request: Request, release_id: str) -> Journal:
    """Charge it, unless another process has begun, or finished, the same release meanwhile."""
    with files.locked():
        refuse_begun(spec, files, ledger, request)
        check_free(files, request.replace)
        return Journal.begin(spec, files, ledger, request, release_id)


def _check_whole(spec: Spec) -> None:
    """Refuse a mechanism that takes its rows push by push."""
    if spec.mechanism.stream:
        at = spec.places.get("mechanism.name", "mechanism.name")
        raise UsageError(
            f"{at}: {spec.mechanism.name} releases a stream, push by push, not a table.",
            next_step="Start it with: dpsynth stream init SPEC. Then, for every batch: "
            "dpsynth stream push SPEC BATCH --batch-id ID --publish",
        )


def _check_gathering(spec: Spec, engine: Engine) -> None:
    """Refuse an engine that cannot gather the rows of a unit, or labels."""
    if engine.gather is not None:
        return
    if spec.privacy.unit is not None:
        raise UsageError(
            "this engine cannot keep so many rows of each unit.",
            next_step="Leave out privacy.unit, or use the engine local or dask.",
        )
    if spec.privacy.apart:
        raise UsageError(
            "this engine cannot look for labels that nobody has listed.",
            next_step="State candidates, or use the engine local or dask.",
        )


def _ask_and_publish(
    spec: Spec,
    ledger: Ledger,
    files: Files,
    inputs: Inputs,
    journal: Journal,
    progress: Progress,
    engine: Engine,
) -> Receipt:
    if spec.tables is not None:
        return _tables_published(spec, ledger, files, inputs, journal, progress, engine)
    unit, sample_rows = spec.privacy.unit, SAMPLE_ROWS if spec.evaluation.metrics else 0
    units = None if unit is None else Units(unit.column, unit.rows, journal.unit_key, unit.order)
    with closing(
        Passes(inputs.scans[""], outer(spec.domain), engine, sample_rows, progress, units)
    ) as passes:
        return _published(spec, ledger, files, passes, journal, progress)


def _published(
    spec: Spec, ledger: Ledger, files: Files, passes: Passes, journal: Journal, progress: Progress
) -> Receipt:
    # Ask: every question is charged, summed inside the border, noised, made durable, then answered.
    bill = Bill(spec.domain, accountant_of(spec), journal.answers)
    ask = open_curator(passes, bill, system_source(), journal, passes.labels)
    outcome = run(spec, replace(ask, progress=progress), bill, journal.seed, declare=passes.declare)

    # Synthesis: from the answers alone, as anybody can repeat it.
    transcript, made = journal.transcript(), Sample(SAMPLE_ROWS)
    pending, public = compose(spec, transcript, outcome, files, progress, made.add)
    stated, spec = spec.domain, spec.found(outcome.found.domain)

    def measured() -> Measured:
        counted = partial(for_the_steward, passes.problems, spec.domain, stated)  # after the sample
        return utility(spec, passes.sampled, made, progress, counted), counted()

    return _in_place(spec, ledger, files, journal, pending, public, measured)


def _tables_published(
    spec: Spec,
    ledger: Ledger,
    files: Files,
    inputs: Inputs,
    journal: Journal,
    progress: Progress,
    engine: Engine,
) -> Receipt:
    """The same for tables that belong together; the steward's figures are of each by itself."""
    assert spec.tables is not None
    sources = {spec.tables.parent: Source(inputs.scans[spec.tables.parent], spec.tables.key, 1)}
    for child in spec.tables.children:
        scan = inputs.scans[child.name]
        sources[child.name] = Source(scan, child.foreign_key, child.rows, child.sorted_by)
    asked = outer(spec.domain)
    with closing(TablePasses(sources, asked, engine, journal.unit_key, progress)) as passes:
        bill = Bill(spec.domain, accountant_of(spec), journal.answers)
        ask = open_curator(passes, bill, system_source(), journal)
        outcome = run(spec, replace(ask, progress=progress), bill, journal.seed, declare=passes.declare)
        stated, specs = each_table(spec), joined_specs(spec, outcome.found.domain, outcome.tables)
        made = {name: Sample(SAMPLE_ROWS) for name in specs}
        pending, public = compose(
            spec, journal.transcript(), outcome, files, progress, made[spec.tables.parent].add,
            {name: sample.add for name, sample in made.items()},
        )  # fmt: skip

        def measured() -> Measured:
            useful, problems = dict[str, Any](), dict[str, Any]()
            for name, own in specs.items():
                declared = [column for column in own.domain if column.origin is None]
                found = Problems.of(column.name for column in declared)
                real = cache(partial(passes.sampled, own.domain, SAMPLE_ROWS, found))
                counted = partial(for_the_steward, found, Domain(tuple(declared)), stated[name].domain)
                useful[name] = utility(own, real, made[name], progress, counted)
                real()
                problems[name] = counted()
            first, *rest = useful
            if useful[first] is not None:
                useful[first] |= {"tables": {name: useful[name] for name in rest}}
            return useful[first], problems[first] | {"tables": {name: problems[name] for name in rest}}

        return _in_place(spec, ledger, files, journal, pending, public, measured)


def _in_place(
    spec: Spec,
    ledger: Ledger,
    files: Files,
    journal: Journal,
    pending: Pending | Written,
    public: dict[str, Any],
    measured: Callable[[], Measured],
) -> Receipt:
    # Publish: the steward's copy has what was measured on real rows; all files in place together.
    try:
        transcript = journal.transcript()
        charged = ledger.receipt(spec.privacy.dataset, journal.release_id)
        useful, problems = measured()
        steward = audit.steward_audit(public, spec.input, files.named(), charged, useful, problems)
        publish(
            files,
            journal.release_id,
            ledger.charged_at(journal.release_id),
            pending,
            transcript.as_bytes(),
            audit.as_text(steward),
            audit.as_text(public),
            journal.commit,
        )
    finally:
        pending.discard()
    journal.remove()
    return Receipt(journal.release_id, public["output"]["rows"], files.named(), public, charged, problems)
