"""Two tables with and without one whole family, through the real border: what the answers can tell of it.

Files are read, joined and truncated as in a release; the mechanism runs once, on the tables with the family.
Then its questions are known, with their sums in both, and `likelihood.py` says how much they can tell,
exactly, and `transcripts.py` how much is seen when their noise is drawn again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from dpsynth_cli.domain import Domain
from dpsynth_cli.evidence.likelihood import Told
from dpsynth_cli.mechanisms.search.outer import outer
from dpsynth_cli.questions import Ints, Question, no_progress
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.synthesis import run
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.spec.tables import each_table
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.engines.local import gather, sum_over
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.unit_marks import fresh_key, unit_column
from dpsynth_cli.trusted.sums.table_passes import Source, TablePasses


@dataclass
class _Both:
    """The rows of both pairs of files; the first are those that are asked."""

    passes: Sequence[TablePasses]
    sums_of: list[tuple[Ints, Ints]] = field(default_factory=list)

    def declare(self, omega: Domain) -> None:
        for one in self.passes:
            one.declare(omega)

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        first, second = (one.sums(questions) for one in self.passes)
        self.sums_of += zip(first, second, strict=True)
        return first


def transcript_of_families(spec: Spec, with_it: Path, without: Path) -> list[Told]:
    """All that one release of the files in the first folder tells, beside what the second would have had.
    They have the names of the spec's inputs; the secret key is the same, as for neighbours it may be."""
    secret = fresh_key()
    with ExitStack() as opened:
        both = _Both(
            [opened.enter_context(closing(_passes(spec, at, secret, opened))) for at in (with_it, without)]
        )
        bill, journal = Bill(spec.domain, accountant_of(spec)), InMemory()
        ask = open_curator(both, bill, system_source(), journal)
        run(spec, ask, bill, 0, declare=both.declare)
        answers = [answer for _, answer in journal.answers]
        return [
            Told(charge, answer, *sums)
            for charge, answer, sums in zip(bill.charges, answers, both.sums_of, strict=True)
        ]


def _passes(spec: Spec, folder: Path, secret: str, opened: ExitStack) -> TablePasses:
    assert spec.tables is not None
    ordered = {child.name: child.sorted_by for child in spec.tables.children}
    sources = {}
    for name, own in each_table(spec).items():
        unit = own.privacy.unit
        assert unit is not None
        columns = (*outer(own.domain).columns, unit_column(unit.column))
        path = str(folder / Path(own.input).name)
        scan = opened.enter_context(closing(open_scan(path, columns, own.csv)))
        sources[name] = Source(scan, unit.column, unit.rows, ordered.get(name, ()))
    engine = Engine(sum_over, watches=True, counts=True, gather=gather)
    return TablePasses(sources, outer(spec.domain), engine, secret, no_progress)
