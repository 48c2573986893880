"""Streams of mixed tables: cells that are public, tables chosen once, models of the newest counts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.online import online, tables
from dpsynth_cli.questions import Asking, Misfit, Model
from tests.asking import drawn
from tests.mechanisms.plain_ask import PlainAsk

SPLIT = dict(online.MECHANISM.stages)
COLUMNS = (
    Column("age", "integer", lower=0, upper=99, nullable=True),
    Column("pay", "integer", lower=0, upper=99_999),
    Column("kind", "nominal", categories=("a", "b", "c", "d")),
    Column("like", "nominal", categories=("w", "x", "y", "z")),
    Column("flag", "nominal", categories=("no", "yes", "never")),
    Column("other", "nominal", categories=("no", "yes", "never")),
)
OMEGA = Domain(COLUMNS)


def people(rows: int, seed: int = 0, turned: int = 0) -> dict[str, np.ndarray]:
    """`like` is mostly `kind` (turned by so many), `pay` is mostly 0, and `flag` says who is old."""
    rng = np.random.default_rng(seed)
    age, kind = rng.integers(0, 101, rows), rng.integers(0, 4, rows)
    return {
        "age": age,
        "pay": np.where(rng.random(rows) < 0.7, 0, rng.integers(0, 100_000, rows)),
        "kind": kind,
        "like": np.where(rng.random(rows) < 0.9, (kind + turned) % 4, rng.integers(0, 4, rows)),
        "flag": (age > 50).astype(np.int64),
        "other": rng.integers(0, 2, rows),
    }


def asking(omega, codes, epsilon=1000.0):
    return PlainAsk(omega, codes, epsilon)


def chosen_on(omega, codes, epsilon=1000.0):
    """A choice, and a function that gives the snapshot of other rows in its tables."""
    plan, asked = online.epoch_plan(omega, SPLIT), []
    ask = asking(omega, codes, epsilon)

    def kept(questions):
        answers = ask(questions)
        asked.extend(question for question in questions if not isinstance(question.statistic, Misfit))
        return answers

    columns = ask(plan.first)
    chosen = tables.choose(Asking(kept, ask.sd), plan, columns)

    def snapshot(rows) -> Model:
        later = asking(omega, rows, epsilon)
        return tables.snapshot(plan, chosen, later(plan.first), later(asked))

    return chosen, snapshot


def agreement(made: dict[str, np.ndarray], turned: int = 0) -> float:
    return float(((made["kind"] + turned) % 4 == made["like"]).mean())


def test_the_cells_of_columns_are_public():
    plan = online.epoch_plan(OMEGA, SPLIT)
    assert sum(q.share for q in plan.first) + plan.spikes + sum(plan.looks) + plan.links + plan.pairs == 1
    assert [q.step for q in plan.first] == ["total", *["columns"] * 8]  # age and pay on two levels


def test_before_a_choice_columns_are_independent_and_have_their_counts():
    plan, rows = online.epoch_plan(OMEGA, SPLIT), people(4000)
    model = tables.snapshot(plan, None, asking(OMEGA, rows)(plan.first))
    made = drawn(model, 4000)
    assert abs(model.total - 4000) < 30
    assert model.notes == (tables.ALONE,)
    assert abs(agreement(made) - 0.25) < 0.05
    assert abs(made["flag"].mean() - rows["flag"].mean()) < 0.03


def test_the_newest_counts_are_in_the_tables_of_the_choice():
    """Links are found by the rows of the choice, and what they say is that of the rows since."""
    chosen, snapshot = chosen_on(OMEGA, people(4000))
    linked = {tuple(OMEGA.modelled[j].name for j in one.scope[0]) for one in chosen.known.links}
    assert {("kind", "like"), ("age", "flag")} <= linked
    assert "pay" in chosen.spikes
    for turned in (0, 2):
        rows = people(8000, 1, turned)
        made = drawn(snapshot(rows), 8000)
        assert abs(agreement(made, turned) - 0.925) < 0.03
        assert abs((made["pay"] == 0).mean() - 0.7) < 0.02
        assert ((made["age"] > 50) == made["flag"]).mean() > 0.95


def test_strata_have_tables_of_their_own():
    omega = replace(OMEGA, strata="kind")
    _, snapshot = chosen_on(omega, people(4000))
    rows = people(4000, 1)
    made = drawn(snapshot(rows), 4000)
    assert abs(agreement(made) - 0.925) < 0.03
    assert np.abs(np.bincount(made["kind"]) - np.bincount(rows["kind"])).max() < 80


def test_tables_are_chosen_when_links_would_be_told_from_noise():
    plan = online.epoch_plan(OMEGA, SPLIT)
    few, many = (PlainAsk(OMEGA, people(10), epsilon) for epsilon in (0.01, 1000.0))
    assert not tables.is_ready(few, plan, 1000.0, 0)
    assert tables.is_ready(many, plan, 1000.0, 0)
    assert tables.is_ready(few, plan, float(tables.MOST_ROWS), 0)


def test_later_epochs_choose_by_twice_as_many_rows():
    plan, ask = online.epoch_plan(OMEGA, SPLIT), PlainAsk(OMEGA, people(10), 1.0)
    least = [next(n for n in range(1, 10**5) if tables.is_ready(ask, plan, n, epoch)) for epoch in (0, 1, 2)]
    assert least[0] == math.ceil(tables.rows_needed(ask, plan))
    assert least[1] == pytest.approx(2 * least[0], abs=2)
    assert least[2] == pytest.approx(4 * least[0], abs=4)


def test_where_noise_hides_links_no_table_is_counted():
    plan, few = online.epoch_plan(OMEGA, SPLIT), PlainAsk(OMEGA, people(10), 0.01)
    chosen = tables.choose(few, plan, few(plan.first))
    assert (chosen.known.links, chosen.known.pairs) == ([], [])


def test_an_epoch_ends_when_it_has_outgrown_its_choice():
    assert not tables.is_over(100.0, 1600.0)
    assert tables.is_over(100.0, 1601.0)


def test_the_rows_of_all_epochs_are_by_their_own_models():
    first, second = (
        Model(total, lambda rows, rng, k=k: iter([{"x": np.full(rows, k)}] if rows else []))
        for k, total in enumerate((100, 300))
    )
    both = tables.joined([first, second])
    assert both.total == 400
    assert np.bincount(drawn(both, 40)["x"]).tolist() == [10, 30]
    assert tables.joined([Model(0, first.draw), Model(0, second.draw)]).total == 0


def test_a_table_of_more_than_five_columns_is_told_of_the_other_algorithm():
    params = online.Params()
    assert online.fits(OMEGA, params) == [
        "online takes 1 to 5 columns by a tree, not 6; set mechanism.algorithm to joint"
    ]
    assert online.fits(OMEGA, replace(params, algorithm="joint")) == []
    public = online.Params(algorithm="joint", arrivals="public")
    assert online.fits(OMEGA, public) == [
        "mechanism.algorithm is joint, where arrivals are private; leave mechanism.arrivals out"
    ]
    assert online.fits(replace(OMEGA, neighbours="replace_one"), replace(params, algorithm="joint")) == [
        "mechanism.algorithm is joint, whose tables are counted under add_remove; set "
        "privacy.neighbours to that"
    ]


@pytest.mark.parametrize("epsilon", [0.01, 1000.0])
def test_what_a_first_release_asks_is_shown_by_check(epsilon):
    ask = PlainAsk(OMEGA, people(2000), epsilon)
    model = online.run(ask, OMEGA, online.Params(algorithm="joint"), SPLIT)
    rows = {0.01: 240_513, 1000.0: 3}[epsilon]  # 15 pairs, 0.0294 of epsilon, noise of 0.15
    assert f"Tables are chosen at about {rows:,} rows: until then columns are" in model.notes[-1]
