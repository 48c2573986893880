"""What follows from answers alone: the model, the synthetic file and the public audit. No data.

A release and its verification come through here, so that they cannot differ.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth_cli import __version__
from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError, VerificationError
from dpsynth_cli.hashing import sha256
from dpsynth_cli.numbers import exact
from dpsynth_cli.questions import Answer, Ask, Asking, Block, Model, Progress, Question, no_progress
from dpsynth_cli.release import audit
from dpsynth_cli.release.publish import Files
from dpsynth_cli.spec.spec import Spec, from_document
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill, TranscriptMismatch
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.ledger.balance import UNBOUNDED, Cost, Unit
from dpsynth_cli.trusted.sums.tally import Tally

if TYPE_CHECKING:  # what reads and writes files takes long to import
    import pandas as pd

    from dpsynth_cli.release.transcript import Transcript
    from dpsynth_cli.release.write import Pending

Watch = Callable[[Block], None]

LARGEST_EPSILON = 1_000_000
LARGEST_NOISE = 10**6  # rows


def no_watch(block: Block) -> None:
    """Do not look."""


@dataclass(frozen=True)
class Outcome:
    """What a mechanism made of its answers and what they cost; and the questions and answers of a paid
    evaluation, if the spec has one."""

    model: Model
    accountant: Accountant
    charges: Sequence[Charge]
    asked: Sequence[Question] = ()
    paid: Sequence[Answer] = ()


@dataclass(frozen=True)
class Receipt:
    """What a release gave: for people and for programs."""

    release_id: str
    rows: int
    files: dict[str, str]
    public: dict[str, Any] = field(repr=False)
    ledger: dict[str, Any]  # for the steward: the entry of the charge, and what remains

    def table(self) -> pd.DataFrame:
        """The synthetic rows as a data frame, with the declared types."""
        if self.files["output"] == "-":
            raise UsageError("the rows went to standard output.", "", "Name a file as the output.")
        return read_frame(self.files["output"], from_document(self.public["spec"]).domain)


def read_frame(path: str, omega: Domain) -> pd.DataFrame:
    """A synthetic file as a pandas data frame, with the declared types."""
    import pandas as pd

    if path.endswith(".parquet"):
        return pd.read_parquet(path)
    frame = pd.read_csv(path, dtype=str, keep_default_na=False).replace("", None)
    kinds = {"integer": "Int64", "continuous": "float64", "boolean": "boolean"}
    for column in omega:
        cells = frame[column.name]
        if column.type in ("date", "datetime"):
            frame[column.name] = pd.to_datetime(cells, format="ISO8601")
        elif column.type == "boolean":
            frame[column.name] = cells.map({"true": True, "false": False}).astype("boolean")
        elif column.type in kinds:
            frame[column.name] = pd.to_numeric(cells).astype(kinds[column.type])
    return frame


def run(spec: Spec, ask: Ask, bill: Bill) -> Outcome:
    """The mechanism, then the paid evaluation: both ask through the same `ask`, out of one budget."""
    try:
        if spec.evaluation.epsilon is None:
            model = spec.mechanism.run(ask, spec.domain, spec.params, spec.split)
            return Outcome(model, bill.accountant, bill.charges)
        share, asked = _payable(spec, ask)
        model = spec.mechanism.run(_part(ask, 1 - share), spec.domain, spec.params, spec.split)
        return Outcome(model, bill.accountant, bill.charges, asked, ask(asked))
    except TranscriptMismatch:
        raise VerificationError(
            "the recorded answers do not fit what the mechanism asks: another version or spec made them.",
            "",
        ) from None


def _payable(spec: Spec, ask: Ask) -> tuple[Fraction, list[Question]]:
    """The evaluation's share of the budget, and its questions. The share is what its epsilon, with the same
    delta, would cost by itself.

    Refuses now what could not be answered later, when the mechanism has spent its own part.
    """
    from dpsynth_cli.evaluate.paid import paid_questions

    assert spec.evaluation.epsilon is not None
    try:
        alone = accountant_of(replace(spec, privacy=replace(spec.privacy, epsilon=spec.evaluation.epsilon)))
        share = alone.total / accountant_of(spec).total
        asked = paid_questions(spec.domain, share)
        for question in asked:
            ask.sd(question)
    except (UsageError, ValueError):
        at = spec.places.get("evaluate.epsilon", "evaluate.epsilon")
        raise UsageError(
            f"{at}: this evaluation cannot be paid for: it has too little epsilon or too many cells.",
            next_step="Raise evaluate.epsilon, release fewer columns, or leave it out.",
        ) from None
    return share, asked


def _part(ask: Ask, share: Fraction) -> Asking:
    """The same `ask`, but its whole budget is a share of the real one."""

    def scaled(question: Question) -> Question:
        return replace(question, share=question.share * share)

    return Asking(
        lambda questions: ask([scaled(question) for question in questions]),
        lambda question: ask.sd(scaled(question)),
        ask.progress,
    )


def compose(
    spec: Spec,
    transcript: Transcript,
    outcome: Outcome,
    files: Files,
    progress: Progress = no_progress,
    watch: Watch = no_watch,
) -> tuple[Pending, dict[str, Any]]:
    """The synthetic file (not yet under its name) and the public audit: from public things alone.

    `watch` sees every block of synthetic codes as it is written.
    """
    model, tally = outcome.model, Tally(outcome.asked, spec.domain)

    def seen(block: Block) -> None:
        watch(block)
        if outcome.asked:
            tally.add(block, len(next(iter(block.values()))))

    rows = max(0, model.total) if spec.rows is None else spec.rows
    release_id, seed = transcript.header["release"]["id"], transcript.header["sampling_seed"]
    pending = draw(spec, model, rows, seed, files.path, progress, release_id, seen)
    output = {
        "file": files.output_name,
        "rows": rows,
        "columns": [column.name for column in spec.domain],
        "sha256": pending.sha256,
    }
    data = transcript.as_bytes()
    public = audit.public_audit(
        spec,
        transcript.header,
        budget_of(outcome.accountant),
        [charge.as_json() for charge in outcome.charges],
        output,
        {"file": files.transcript.name, "sha256": sha256(data)},
        model.notes,
        model.facts,
        paper_bound(spec, model.total),
    )
    if outcome.asked:
        from dpsynth_cli.evaluate.paid import paid_errors

        found = paid_errors(spec.domain, outcome.paid, tally.sums(), rows, model.total)
        public["evaluation"] = {"epsilon": transcript.header["spec"]["evaluate"]["epsilon"]} | found
    return pending, public


def draw(
    spec: Spec,
    model: Model,
    rows: int,
    seed: int,
    path: str,
    progress: Progress,
    tag: str | None = None,
    watch: Watch = no_watch,
) -> Pending:
    """Rows from a model, in a temporary file beside `path`."""
    from dpsynth_cli.release.write import write_table

    progress("writing", 0, rows)

    def watched() -> Iterator[Block]:
        for block in model.draw(rows, np.random.default_rng(seed)):
            watch(block)
            yield block
            progress("writing", len(next(iter(block.values()))), rows)

    return write_table(path, spec.domain.columns, watched(), rows, tag)


def check_paid_for(bill: Sequence[Charge], answers: Sequence[tuple[Any, Answer]]) -> None:
    """Recorded answers have the noise that their shares pay for, and none is left over."""
    for charge, (_, answer) in zip(bill, answers, strict=False):
        if (answer.noise, answer.sd) != (charge.price.noise, charge.price.sd):
            raise VerificationError("the transcript claims other noise than its shares pay for.", "")
    if len(bill) != len(answers):
        raise VerificationError("the transcript has answers that the mechanism never asked for.", "")


def paper_bound(spec: Spec, rows: float) -> float | None:
    """The paper's bound on the expected W1 (l_inf, unit cube), with its constants; None if there is none."""
    if spec.privacy.delta is not None or spec.evaluation.epsilon is not None:
        return None
    return spec.mechanism.bound(spec.domain, spec.params, float(spec.privacy.budget), max(1.0, rows))


def accountant_of(spec: Spec) -> Accountant:
    """One currency a release: pure epsilon, or rho where the spec has a delta.

    Refuses what would be no release: an epsilon that protects nobody, or one whose noise drowns every table.
    """
    privacy, at = spec.privacy, spec.places.get("privacy.epsilon", "privacy.epsilon")
    if privacy.budget > LARGEST_EPSILON:
        raise UsageError(
            f"{at}: epsilon is above {LARGEST_EPSILON:,}, which protects nobody.",
            next_step="An epsilon of 1 is usual, and more than 10 is hard to defend.",
        )
    if privacy.delta is None:
        accountant = Accountant.pure(privacy.budget)
    else:
        accountant = Accountant.zcdp(privacy.budget, privacy.delta)
    if _noise(accountant) > LARGEST_NOISE:
        raise UsageError(
            f"{at}: epsilon is too small: even one count with the whole budget would be off by more than a "
            "million rows.",
            next_step="Raise privacy.epsilon.",
        )
    return accountant


def _noise(accountant: Accountant) -> float:
    """The standard deviation of one count that gets the whole budget."""
    try:
        return accountant.price(Fraction(1), 1, 1).sd
    except ValueError:
        return math.inf


def cost_of(spec: Spec) -> Cost:
    """What the release costs, as the ledger counts it."""
    privacy = spec.privacy
    if privacy.epsilon is None:
        return UNBOUNDED
    accountant = accountant_of(spec)
    return Cost(
        accountant.total,
        Unit(accountant.currency, privacy.neighbours),
        exact(privacy.budget),
        None if privacy.delta is None else str(float(privacy.delta)),
    )


def budget_of(accountant: Accountant) -> dict[str, Any]:
    """Total and spent, as exact strings and as floats."""
    return {
        "currency": accountant.currency,
        "total": str(accountant.total),
        "total_float": float(accountant.total),
        "spent": str(accountant.spent),
        "spent_float": float(accountant.spent),
    }


def about(spec: Spec, release_id: str) -> dict[str, Any]:
    """Which release it is, made when and by what."""
    day = datetime.now(timezone.utc).date().isoformat()
    return {"id": release_id, "name": spec.name, "day": day, "versions": versions()}


def versions() -> dict[str, str]:
    """What made a release: the same versions make the same bytes."""
    from importlib.metadata import version  # scipy itself takes long to import, and few need it

    return {
        "dpsynth": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        **{name: version(name) for name in ("numpy", "scipy", "pyarrow")},
    }
