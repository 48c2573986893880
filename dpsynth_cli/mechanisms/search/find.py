"""All private columns of a domain: what is asked, what follows from the answers, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.search import bounds, steps
from dpsynth_cli.mechanisms.search.categories import labels_found, labels_kept
from dpsynth_cli.mechanisms.search.noise import reach
from dpsynth_cli.mechanisms.search.outer import outer, private
from dpsynth_cli.questions import Answer, Ask, Bins, CellCounts, Cells, OpenLabels, Question
from dpsynth_cli.shares import divide

STEP = "domain"
SHARE = Fraction(1, 10)  # of the budget, where the spec states none
FAILURE = Fraction(1, 20)  # probability, of all that is looked for together
FIRST, SECOND = 2, 1  # shares of the two looks at bounds

Declare = Callable[[Domain], None]


@dataclass(frozen=True)
class Found:
    """The domain that was found, the share that it took, and what the audit says of it."""

    domain: Domain
    spent: Fraction
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass
class _Search:
    """One column: how it is asked now, and what is known of it."""

    column: Column  # as it is asked
    declared: Column
    wanted: Column  # as it was found so far
    shares: list[Fraction]  # of its looks
    sure: bool = True
    seen: float = 0.0  # rows of what is found, but for the probability of failure
    rows: tuple[float, float] = (0.0, math.inf)  # in what was kept, and the noise of that
    outside: float | None = None  # rows that a second look may have left out, where it narrowed bounds
    done: bool = False


def find(
    ask: Ask,
    declare: Declare,
    omega: Domain,
    share: Fraction,
    sought: Collection[str] = (),
    delta: Fraction = Fraction(0),
) -> Found:
    """Bounds and categories of the private columns, for at most a share of the budget; then what
    the numbers of those that are `sought` are rounded to. `delta` is for labels that nobody has listed.

    `declare` is told which columns questions are about from now on. What is not spent is left to the
    mechanism. Everything follows from the answers.
    """
    found = _outlined(ask, declare, omega, share, delta) if private(omega) else Found(omega, Fraction(0))
    columns = [c for c in found.domain if c.name in sought and steps.roundable(c)]
    return _rounded(ask, declare, found, columns) if columns else found


def _rounded(ask: Ask, declare: Declare, found: Found, columns: Sequence[Column]) -> Found:
    """The same with the steps of these columns."""
    asked = [steps.asked_for(column) for column in columns]
    declare(_with(found.domain, asked))
    share = steps.share_for(lambda share: ask.sd(_every_code(asked[0], share / len(asked))))
    shares = divide(share, [1.0] * len(asked))
    questions = [_every_code(column, own) for column, own in zip(asked, shares, strict=True)]
    answers = zip(columns, ask(questions), strict=True)
    after = [steps.rounded(column, answer) for column, answer in answers]
    domain = _with(found.domain, after)
    declare(domain)
    seen = {column.name: None if column.step is None else float(column.step) for column in after}
    spent = found.spent + sum((question.share for question in questions), Fraction(0))
    return replace(
        found, domain=domain, spent=spent, facts=found.facts | {"share": str(spent), "steps": seen}
    )


def _every_code(column: Column, share: Fraction) -> Question:
    return Question(STEP, CellCounts(Cells((Bins(column.name, tuple(range(column.codes + 1))),))), share)


def _with(domain: Domain, columns: Sequence[Column]) -> Domain:
    """The domain with these in the place of columns of the same names."""
    by_name = {column.name: column for column in columns}
    return replace(domain, columns=tuple(by_name.get(column.name, column) for column in domain))


def _outlined(ask: Ask, declare: Declare, omega: Domain, share: Fraction, delta: Fraction) -> Found:
    asked = outer(omega)
    declare(asked)
    searches, failure = _searches(omega, asked, share)
    spent = Fraction(0)
    open_ = [search for search in searches if search.column.open]
    if open_:
        questions = [_labels_of(search, delta / len(open_)) for search in open_]
        spent += sum((question.share for question in questions), Fraction(0))
        for search, answer in zip(open_, ask(questions), strict=True):
            search.wanted, search.sure = labels_found(search.wanted, answer.values)
            search.done = True
    for look, learn in enumerate((_first, _second)):
        open_ = [search for search in searches if not search.done]
        if not open_:
            break
        if look:
            asked = _with(asked, [search.column for search in open_])
            declare(asked)
        questions = [_question(search.column, search.shares[look]) for search in open_]
        spent += sum((question.share for question in questions), Fraction(0))
        for search, answer in zip(open_, ask(questions), strict=True):
            learn(search, answer, failure)
    domain = _with(omega, [search.wanted for search in searches])
    declare(domain)
    return Found(domain, spent, _facts(searches, spent), _notes(searches))


def first_looks(
    omega: Domain, share: Fraction, delta: Fraction = Fraction(0)
) -> tuple[dict[str, Question], float]:
    """What is asked first, by column, and the probability that each answer may fail with."""
    searches, failure = _searches(omega, outer(omega), share)
    own = delta / max(1, sum(search.column.open for search in searches))
    return {
        search.column.name: _labels_of(search, own)
        if search.column.open
        else _question(search.column, search.shares[0])
        for search in searches
    }, failure


def _labels_of(search: _Search, delta: Fraction) -> Question:
    return Question(STEP, OpenLabels(search.column.name, delta), search.shares[0])


def _searches(omega: Domain, asked: Domain, share: Fraction) -> tuple[list[_Search], float]:
    columns = private(omega)
    searches = []
    for column, own in zip(columns, divide(share, [1.0] * len(columns)), strict=True):
        shares = [own] if column.categorical else divide(own, [FIRST, SECOND])
        searches.append(_Search(asked[column.name], column, column, shares))
    return searches, float(FAILURE) / looks(columns)


def looks(columns: Iterable[Column]) -> int:
    """How many answers such columns are found by, at most."""
    return sum(1 if column.categorical else 2 for column in columns)


def _bins(column: Column) -> Bins:
    return bounds.octave_bins(column) if column.octaves or column.categorical else bounds.even_bins(column)


def _question(column: Column, share: Fraction) -> Question:
    return Question(STEP, CellCounts(Cells((_bins(column),))), share)


def _first(search: _Search, answer: Answer, failure: float) -> None:
    """What stands above the noise; bounds of few octaves or cells are looked at again."""
    counts = answer.values[:-1].astype(np.float64)  # the last is missing
    reached = reach(answer.noise, answer.sd, len(answer.values), failure)
    search.seen = 2 * reached
    column = search.column
    if column.categorical:
        search.wanted, search.sure = labels_kept(search.wanted, counts, reached)
        search.done = True
        return
    first, last, search.sure = bounds.kept(counts, reached)
    if column.octaves:
        low, high, narrow = bounds.from_octaves(column, first, last)
    else:
        (low, high), narrow = bounds.from_even(column, first, last, 1), last - first < bounds.NARROW
    search.wanted = bounds.with_bounds(search.declared, low, high)
    search.column = bounds.narrowed(column, low, high)
    inside = counts[first : last + 1]
    search.rows = float(inside.sum()), answer.sd * math.sqrt(len(inside))
    search.done = not (narrow and search.sure) or search.column.size < bounds.CELLS


def _second(search: _Search, answer: Answer, failure: float) -> None:
    """Closer bounds, if nothing seems to be outside of them."""
    counts = answer.values[:-1].astype(np.float64)
    first, last, sure = bounds.kept(counts, reach(answer.noise, answer.sd, len(answer.values), failure))
    closer = bounds.beside(counts, answer.sd, first, last, *search.rows) if sure else None
    if closer is not None:
        beside, search.outside = closer
        low, high = bounds.from_even(search.column, first, last, beside)
        search.wanted = bounds.with_bounds(search.declared, low, high)
    search.done = True


def _facts(searches: Sequence[_Search], spent: Fraction) -> dict[str, Any]:
    return {
        "share": str(spent),
        "failure_probability": float(FAILURE),
        "sure": {search.column.name: search.sure for search in searches},
        "rows_seen": {s.column.name: math.ceil(s.seen) for s in searches if not s.column.open},
        "may_be_outside": {
            search.column.name: math.ceil(search.outside) for search in searches if search.outside is not None
        },
    }


def _notes(searches: Sequence[_Search]) -> tuple[str, ...]:
    notes = []
    for open_, what in (
        (False, "what was found there is a guess"),
        (True, "no label was found, and all rows are of the other category"),
    ):
        unsure = [
            search.column.name for search in searches if not search.sure and search.column.open == open_
        ]
        if unsure:
            notes.append(
                f"nothing of {', '.join(unsure)} stood above the noise: {what}. State bounds or categories "
                "by public knowledge, or raise privacy.search."
            )
    return tuple(notes)
