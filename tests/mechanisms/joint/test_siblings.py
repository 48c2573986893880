"""Children given their parent and the child before: what they are like, place by place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.joint import MECHANISM
from dpsynth_cli.mechanisms.joint.choice import worthwhile
from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.mechanisms.joint.ladder import ladder
from dpsynth_cli.mechanisms.joint.siblings import given_first
from dpsynth_cli.mechanisms.joint.survey import Gap, Survey
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.mechanisms.tables.families import Some, child_model, children, in_order, of_parents, opened
from dpsynth_cli.questions import Model
from dpsynth_cli.spec.tables import Child, Tables
from tests.asking import asking, drawn

K = 5
PARENTS = Domain((Column("rich", "boolean", categories=("false", "true")),), table="homes", unit_rows=1)
OWN = (
    Column("age", "integer", lower=0, upper=99),
    *(Column(name, "boolean", categories=("false", "true")) for name in ("insured", "ill", "works", "reads")),
)


def families(n: int, rng: np.random.Generator):
    """Members of a household are alike in four ways, all of which depend on each other; ages fall by 20."""
    rich = rng.integers(0, 2, n)
    number = np.clip(rng.poisson(2 + rich), 0, K)
    parent = np.repeat(np.arange(n), number)
    place = np.arange(len(parent)) - np.repeat(np.cumsum(number) - number, number)
    common = (rng.normal(size=n) + 0.5 * rich)[parent]
    alike = {
        name: (common + rng.normal(size=len(parent)) > 1).astype(np.int64)
        for name in ("insured", "ill", "works", "reads")
    }
    age = np.clip((60 + 5 * rng.normal(size=n))[parent] - 12 * place, 0, 99).astype(np.int64)
    return {"rich": rich, "number of people": number}, {"age": age} | alike, parent, place


def domains() -> tuple[Domain, Domain]:
    child = Child("people", None, "home", K, (), None)
    tables = Tables("homes", "home", (child,))
    above = tables.of_parents(PARENTS)
    return above, child.of_child(Domain(OWN, table="people", unit_rows=K), above)


@pytest.fixture(scope="module")
def released():
    """All that a release of many families at a large epsilon draws, and what was real."""
    rng = np.random.default_rng(1)
    above, omega = domains()
    homes, people, parent, place = families(6000, rng)
    given, _, _ = opened(homes, omega, above)
    before = {f"previous.{c.name}": np.where(place == 0, c.size, np.roll(people[c.name], 1)) for c in OWN}
    split = dict(MECHANISM.stages)
    ask = asking(homes, above, 50, 1e-6)[0]
    model: Model = MECHANISM.run(ask, above, MECHANISM.params(), split)
    told = asking(people | given | before, omega, 50, 1e-6)[0]
    some = Some.of(model, above, "people")
    made = child_model(told, omega, above, split, some)
    table = drawn(children(model, made, omega, above, "home"), 6000)
    return people, place, parent, table


@pytest.mark.slow
def test_what_children_are_like_does_not_drift_from_place_to_place(released):
    """A model that counts what siblings have in common twice has more and more of it."""
    people, place, _, made = released
    for name in ("insured", "ill", "works", "reads"):
        real = [people[name][place == at].mean() for at in range(4)]
        again = [made[name][made["place"] == at].mean() for at in range(4)]
        assert np.abs(np.subtract(real, again)).max() < 0.06, name


@pytest.mark.slow
def test_siblings_are_alike_and_in_order(released):
    people, place, _, made = released
    for codes, at in ((people, place), (made, made["place"])):
        later = np.flatnonzero(at > 0)
        gap = codes["age"][later - 1] - codes["age"][later]
        assert 9 < np.median(gap) < 15
        share = np.corrcoef(codes["insured"][later], codes["insured"][later - 1])[0, 1]
        assert 0.2 < share < 0.6


@pytest.mark.slow
def test_every_child_names_a_parent_whose_number_it_shares(released):
    made = released[3]
    homes, counts = np.unique(made["home"], return_counts=True)
    assert homes.max() < 6000
    number = made["homes.number of people"][np.searchsorted(made["home"], homes)]
    assert (counts == number).all()


def test_given_columns_come_first_and_others_by_their_strongest_link():
    class Link:
        def __init__(self, counts):
            self.counts = np.array([counts], float)

    weak, strong = Link([[6, 4], [4, 6]]), Link([[9, 1], [1, 9]])
    pairs = {(0, 2): weak, (0, 1): strong, (1, 2): strong}
    order = given_first([2], pairs, 4)
    assert [j for j, _ in order] == [2, 1, 0, 3]
    assert order[1][1] is strong
    assert order[2][1] is strong
    assert order[3][1] is None


def test_children_are_sorted_within_their_parent_missing_ones_last():
    omega = Domain(
        (
            Column("age", "integer", lower=0, upper=9, nullable=True),
            Column("role", "nominal", categories=("a", "b")),
        )
    )
    made = {"age": np.array([3, 10, 5, 5, 2, 7]), "role": np.array([1, 0, 1, 0, 0, 0])}
    parent = np.array([0, 0, 0, 0, 1, 1])
    assert in_order(made, omega, parent, [("age", True), ("role", False)]).tolist() == [3, 2, 0, 1, 5, 4]
    assert in_order(made, omega, parent, [("age", False)]).tolist() == [0, 2, 3, 1, 4, 5]
    assert in_order(made, omega, parent, []).tolist() == [0, 1, 2, 3, 4, 5]


def test_at_most_so_many_of_each_parent_and_all_of_one_that_has_no_more():
    parent = np.repeat(np.arange(50), np.arange(50) % 5)
    kept = of_parents(parent, 2)
    assert (np.bincount(parent[kept], minlength=50) == np.minimum(np.arange(50) % 5, 2)).all()


def test_few_children_are_asked_about_where_noise_is_large():
    some = Some({}, np.array([1, 2, 3, 6] * 100))
    assert some.asked(1e6, 400, 6) == 1
    assert some.asked(0.0, 400, 6) == 6


def test_more_children_are_asked_about_where_those_of_large_families_are_most_of_all():
    """By noise and chance alone two would be a little worse than one; but one may stand for five."""
    few = np.repeat([1, 2, 3, 4, 5], [594, 962, 240, 164, 40])  # households of one to five
    variance, rows = 49.0, [2000 * np.minimum(few, t).mean() for t in (1, 2)]
    one, two = ((t**2 * variance + n / 64) / n**2 for t, n in zip((1, 2), rows, strict=True))
    assert 1 < two / one < 1.15
    assert Some({}, few).asked(variance, 2000, 5) == 2


def test_a_table_of_children_is_counted_for_half_of_what_chance_does_to_it():
    """So it takes twice the chance until a table of independent columns is; how far columns are linked counts
    in full."""
    _, omega = domains()
    alone = replace(omega, columns=OWN)  # the same noise
    ladders = [
        ladder(c, Marginal(np.arange(c.codes), np.ones(c.codes, int), [np.ones(c.codes)]), 64) for c in OWN
    ]
    frame = Frame(
        ladders, [np.full((1, own.cells), 50.0) for own in ladders], [own.level(16) for own in ladders]
    )
    scope = ((0, 1), (frame.coarse[0], frame.coarse[1]))

    def least(columns: Domain, gap: Callable[[float], Gap]) -> float:
        survey = Survey(asking({}, columns, 1, 1e-6)[0], columns, frame)
        tried = np.linspace(0.001, 3, 3000)
        return next(x for x in tried if worthwhile(survey, {scope: gap(x)}, Fraction(1, 4)))

    by_chance, linked = (lambda x: Gap(0.0, x)), (lambda x: Gap(x, 0.0))
    assert least(omega, by_chance) == pytest.approx(2 * least(alone, by_chance), rel=0.02)
    assert least(omega, linked) == pytest.approx(least(alone, linked), rel=0.02)
