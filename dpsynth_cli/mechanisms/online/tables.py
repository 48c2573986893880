"""Streams of mixed tables: the model of `joint`, from running counts.

Single columns are counted from the first release on (`columns.py`). As soon as noise lets links between
columns be told, tables of them are chosen once (`choose`), by the rules of `joint`, and counted from then on.
The questions are sums over rows, so each answer is a count of everything so far; a snapshot is the model that
fits the newest counts in the cells and tables of the choice.

A choice is for one epoch: when there are many times as many rows as it was made for, the next epoch begins
with its own columns and tables. A snapshot has the rows of each epoch by that epoch's model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.joint import choice, look_at_pairs, pair_scopes
from dpsynth_cli.mechanisms.joint.columns import FINEST, SCREENED, WIDE
from dpsynth_cli.mechanisms.joint.estimates import Counted, combined
from dpsynth_cli.mechanisms.joint.frame import Frame, with_rules
from dpsynth_cli.mechanisms.joint.ladder import Ladder, ladder
from dpsynth_cli.mechanisms.joint.model import Evidence
from dpsynth_cli.mechanisms.joint.rows import drawing
from dpsynth_cli.mechanisms.joint.survey import gap_noise, is_gaussian
from dpsynth_cli.mechanisms.online.columns import column_questions, marginals_of, plans_for
from dpsynth_cli.mechanisms.shared.attributes import attribute
from dpsynth_cli.mechanisms.shared.oneway import Marginal, spike_question, with_spikes
from dpsynth_cli.mechanisms.shared.oneway_plan import ColumnPlan
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.numeric.sampling import whole
from dpsynth_cli.questions import Answer, Ask, Asking, Bins, Block, CellCounts, Cells, Misfit, Model, Question
from dpsynth_cli.shares import divide

COLUMNS, SPIKES, LOOKS, LINKS, PAIRS = 0.28, 0.02, 0.06, 0.25, 0.39  # of the share of counts
# Noise of a pair's gap, as a part of the rows, at which tables are chosen: with Gaussian noise, with Laplace
# noise, of which gaps have far more than tables, so that one would wait too long.
READY = {True: 0.06, False: 0.15}
MOST_ROWS = 2**20  # that are waited for; then columns stay independent
GROWTH = 16  # an epoch ends with so many times the rows of its choice
ALONE = (
    "Noise would hide which columns are linked in the rows so far: columns are independent (within a class). "
    "Tables are chosen as soon as there are enough rows."
)

FIRST = (
    "This is the first release, with tables if there are enough rows. Every event costs the whole, once for "
    "all releases; later releases have more noise. Tables are chosen at about {rows:,} rows: until then "
    "columns are independent, and the rows are kept in the state of the stream."
)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is public of an epoch: its questions about columns, and the shares of what is asked later."""

    omega: Domain
    columns: list[ColumnPlan]
    first: list[Question]
    spikes: Fraction
    looks: list[Fraction]
    links: Fraction
    pairs: Fraction


def plan_for(omega: Domain, total: float, counts: float) -> Plan:
    """By the weights of the stages `total` and `counts`."""
    own, rest = divide(Fraction(1), (total, counts))
    columns, spikes, looks, links, pairs = divide(rest, (COLUMNS, SPIKES, LOOKS, LINKS, PAIRS))
    plans = plans_for(omega, columns)
    return Plan(
        omega, plans, column_questions(omega, own, plans), spikes, divide(looks, [1, 1]), links, pairs
    )


@dataclass(frozen=True, eq=False)
class Chosen:
    """The cells and tables of a choice; `spikes` are the questions about single codes, by column."""

    spikes: dict[str, Question]
    known: Evidence


def rows_in(answers: Sequence[Answer]) -> float:
    """The number of rows, by the first answer."""
    return max(1.0, float(answers[0].values.sum()))


def rows_needed(ask: Ask, plan: Plan, epoch: int = 0) -> float:
    """How many rows tables are chosen by: so many that links are told from noise, and twice as many in each
    further epoch; but no more than may be kept."""
    d = len(plan.omega.modelled)
    if d < 2:
        return 0.0
    lone = gap_noise(ask, d * (d - 1) // 2, plan.looks[0], 1.0)
    return min(float(MOST_ROWS), float(2**epoch) * lone / READY[is_gaussian(ask)])


def is_ready(ask: Ask, plan: Plan, rows: float, epoch: int) -> bool:
    """Whether tables are chosen now."""
    return rows >= rows_needed(ask, plan, epoch)


def tells_links(ask: Ask, plan: Plan, pairs: int, rows: float) -> bool:
    """Whether the gaps of so many pairs would be told from noise."""
    return gap_noise(ask, pairs, plan.looks[0], rows) <= READY[is_gaussian(ask)]


def is_over(chosen_at: float, rows: float) -> bool:
    """Whether an epoch has outgrown its choice."""
    return rows > GROWTH * chosen_at


def choose(ask: Ask, plan: Plan, answers: Sequence[Answer]) -> Chosen:
    """Spikes, links and pairs that are worth counting, by what columns are so far: as `joint` does it."""
    omega = plan.omega
    marginals = marginals_of(omega, plan.columns, answers)
    spikes = _spikes(ask, plan, marginals)
    frame = _frame(omega, _ladders(omega, marginals))
    known = Evidence(frame, _variances(plan, answers))
    scopes = pair_scopes(frame)
    if not scopes or not tells_links(ask, plan, len(scopes), rows_in(answers)):
        return Chosen(spikes, known)
    survey, gaps, noise = look_at_pairs(ask, omega, frame, scopes, plan.looks[0], plan.links + plan.pairs)
    forest = choice.forest(gaps, noise, len(frame.ladders))
    links = choice.worthwhile(survey, {scope: gaps[scope] for scope in forest}, plan.links, choice.LINKED)
    links = links or [max(scopes, key=lambda scope: gaps[scope].beyond)]
    known.links = survey.count("links", links, plan.links)
    known.learn(known.links)
    chain, _ = known.fit(scopes)
    left, _ = survey.gaps({scope: chain.expected[scope] for scope in scopes}, plan.looks[1])
    linked = {scope[0] for scope in links}
    pairs = choice.worthwhile(survey, {s: left[s] for s in scopes if s[0] not in linked}, plan.pairs)
    known.pairs = survey.count("pairs", pairs or links, plan.pairs)
    return Chosen(spikes, known)


def _spikes(ask: Ask, plan: Plan, marginals: dict[str, Marginal]) -> dict[str, Question]:
    """Asks for single codes of columns that have heavy cells, which then are runs of their own."""
    asked: dict[str, Question] = {}
    numeric = [own for own in plan.columns if own.levels]
    for own in numeric:
        name = own.column.name
        part = replace(own, spikes=plan.spikes / len(numeric))
        question = spike_question(ask, plan.omega, part, marginals[name])
        if lengths(question) > len(marginals[name].first):
            asked[name] = question
    answers = ask(list(asked.values())) if asked else []
    for (name, question), answer in zip(asked.items(), answers, strict=True):
        marginals[name], _ = with_spikes(marginals[name], question, answer)
    return asked


def lengths(question: Question) -> int:
    """The pieces that a question about spikes has."""
    assert isinstance(question.statistic, CellCounts)
    assert isinstance(question.statistic.cells, Cells)
    axis = question.statistic.cells.axes[0]
    assert isinstance(axis, Bins)
    return len(axis.edges) - 1


def _ladders(omega: Domain, marginals: Mapping[str, Marginal]) -> list[Ladder]:
    rules = Rules(omega)
    return [
        ladder(column, marginals[column.name], FINEST, rules.cuts(column.name)) for column in omega.modelled
    ]


def _frame(omega: Domain, ladders: list[Ladder]) -> Frame:
    most = SCREENED if len(ladders) < WIDE else SCREENED // 2
    masses = [np.array([own.finest.masses(k) for k in range(omega.classes)]) for own in ladders]
    return with_rules(Frame(ladders, masses, [own.level(most) for own in ladders]), omega, Rules(omega))


def _variances(plan: Plan, answers: Sequence[Answer]) -> list[float]:
    """Of a count of each column, at its first level."""
    firsts = np.cumsum([1, *(len(own.questions) for own in plan.columns)])[:-1]
    return [answers[at].sd ** 2 for at in firsts]


def first_release(ask: Ask, plan: Plan) -> Model:
    """What an epoch asks if tables are chosen at its first release."""
    columns = ask(plan.first)
    note = FIRST.format(rows=math.ceil(rows_needed(ask, plan)))
    if not is_ready(ask, plan, rows_in(columns), 0):
        model = snapshot(plan, None, columns)
        return replace(model, notes=(*model.notes, note))
    counts: list[Answer] = []

    def kept(questions: Sequence[Question]) -> list[Answer]:
        answers = ask(questions)
        counts.extend(
            a for q, a in zip(questions, answers, strict=True) if not isinstance(q.statistic, Misfit)
        )
        return answers

    model = snapshot(plan, choose(Asking(kept, ask.sd), plan, columns), columns, counts)
    return replace(model, notes=(*model.notes, note))


# --- snapshots -----------------------------------------------------------------------------------------


def snapshot(
    plan: Plan, chosen: Chosen | None, columns: Sequence[Answer], tables: Sequence[Answer] = ()
) -> Model:
    """The model of an epoch, by the newest counts of its columns and, if it has them, of its tables."""
    omega = plan.omega
    marginals = marginals_of(omega, plan.columns, columns)
    if chosen is None:
        known = Evidence(_frame(omega, _ladders(omega, marginals)), _variances(plan, columns))
    else:
        known = _newest(plan, chosen, marginals, columns, tables)
    chain, _ = known.fit()
    names = [own.column.name for own in known.frame.ladders]
    facts = {
        kind: [[names[j] for j in one.scope[0]] for one in counted]
        for kind, counted in (("links", known.links), ("pairs", known.pairs))
    }
    notes = () if known.links else (ALONE,)
    total = round(float(known.frame.totals.sum()))
    return Model(total, drawing(omega, known.frame, chain, Rules(omega)), notes, facts)


def _newest(
    plan: Plan,
    chosen: Chosen,
    marginals: dict[str, Marginal],
    columns: Sequence[Answer],
    tables: Sequence[Answer],
) -> Evidence:
    """All that was counted in the cells of the choice."""
    omega, rules, left = plan.omega, Rules(plan.omega), iter(tables)
    for name, question in chosen.spikes.items():
        marginals[name], _ = with_spikes(marginals[name], question, next(left))
    ladders = []
    for old in chosen.known.frame.ladders:
        cut = attribute(old.column, marginals[old.column.name], 2**20, rules.cuts(old.column.name)).marginal
        ladders.append(replace(old, finest=replace(old.finest, marginal=cut)))
    known = Evidence(_frame(omega, ladders), _variances(plan, columns))
    known.links = [_counted(one, next(left)) for one in chosen.known.links]
    pairs = [_counted(one, next(left)) for one in chosen.known.pairs]
    again = [one for one in pairs if one.scope in {link.scope for link in known.links}]
    if again:
        known.links = [combined(one, other) for one, other in zip(known.links, again, strict=True)]
    else:
        known.pairs = pairs
    known.learn([*known.links, *known.pairs])
    return known


def _counted(before: Counted, answer: Answer) -> Counted:
    return Counted(before.scope, answer.values.reshape(before.noisy.shape).astype(np.float64), answer.sd**2)


def joined(models: Sequence[Model]) -> Model:
    """The rows of all epochs, each by its own model."""
    totals = np.array([max(0, model.total) for model in models], np.float64)

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        for model, count in zip(models, whole(totals, rows, rng).tolist(), strict=True):
            yield from model.draw(count, rng)

    *_, last = models
    return Model(int(totals.sum()), draw, last.notes, last.facts | {"epochs": len(models)})
