"""Covariances of one-hot rows: exact without noise, by signs with half of it, and the edge of the noise."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.microaggregation.covariance import covariances, expected_edge, question
from dpsynth_cli.mechanisms.microaggregation.microaggregation import MECHANISM, Params, _alone
from dpsynth_cli.mechanisms.microaggregation.products import within
from dpsynth_cli.mechanisms.shared.attributes import Attribute
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.questions import Answer, Gram, Moments, Question
from tests.asking import asking, drawn

RELATIONS = ("add_remove", "replace_one")


def table(
    n: int, sizes: list[int], kind: str = "nominal", seed: int = 0
) -> tuple[Domain, dict[str, np.ndarray]]:
    """Attributes of so many cells that depend on one hidden number."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    columns = tuple(Column(f"c{j}", kind, categories=tuple("abcdef"[:k])) for j, k in enumerate(sizes))
    cells = [np.clip(np.floor(hidden + rng.normal(size=n) + k / 2), 0, k - 1) for k in sizes]
    return Domain(columns), {f"c{j}": cell.astype(np.int64) for j, cell in enumerate(cells)}


def attributes(omega: Domain, rows: dict[str, np.ndarray]) -> list[Attribute]:
    """Each column with its exact marginal."""
    found = []
    for column in omega:
        masses = np.bincount(rows[column.name], minlength=column.codes).astype(np.float64)
        whole = Marginal(np.arange(column.codes), np.ones(column.codes, np.int64), [masses])
        found.append(Attribute(column, whole, np.arange(column.codes)))
    return found


def one_hot(omega: Domain, rows: dict[str, np.ndarray]) -> np.ndarray:
    return np.hstack([np.eye(column.codes)[rows[column.name]] for column in omega])


def asked_and_found(omega, rows, epsilon, delta=None, asked=None):
    own = attributes(omega, rows)
    ask, *_ = asking(rows, omega, epsilon, delta)
    asked = asked or question(ask, omega, [a.axis for a in own], [a.cells for a in own], Fraction(1))
    answer = ask([asked])[0]
    return asked, answer, covariances(asked, answer, own, np.array([float(len(rows["c0"]))]))[0]


@pytest.mark.parametrize(
    ("sizes", "kind", "moments"),
    [([3, 2, 4], "nominal", False), ([2, 2, 2], "nominal", False), ([2, 2, 2], "boolean", True)],
)
def test_without_noise_the_covariance_is_that_of_the_one_hot_rows(sizes, kind, moments):
    omega, rows = table(500, sizes, kind)
    signed = Question("gram", Moments(tuple(rows), 5, 2), Fraction(1)) if moments else None
    _, _, found = asked_and_found(omega, rows, 10**9, asked=signed)
    means = [a.masses(0) / 500 for a in attributes(omega, rows)]
    exact = np.cov(one_hot(omega, rows).T, bias=True)
    assert np.abs(found.seen + within(means) - exact).max() < 1e-6
    assert np.abs(found.kept - found.seen).max() < 1e-6
    assert found.edge < 1e-5


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("kind", ["nominal", "boolean"])
def test_signs_have_at_most_half_of_the_noise_of_pair_tables(kind, delta, neighbours):
    omega, rows = table(500, [2] * 10, kind)
    omega = Domain(omega.columns, neighbours)
    ask, *_ = asking(rows, omega, 1.0, delta)
    own = [a.axis for a in attributes(omega, rows)]
    asked = question(ask, omega, own, [2] * 10, Fraction(1))
    # A covariance is a quarter of a sum of signs, and a quarter of four noisy cells: sd / 4 and sd / 2.
    unit = (2**asked.statistic.bits - 1) ** 2
    noise = ask.sd(asked) / unit
    # Under replace_one with a delta: 2 sqrt(floor(d^2 / 4)) against sqrt(d (d - 1)).
    slack = 1.055 if delta and neighbours == "replace_one" else 1.001
    assert noise / 4 <= 0.5 * ask.sd(Question("gram", Gram(tuple(own)), Fraction(1))) / 2 * slack
    if kind == "boolean" and delta is None:
        signs = Gram(tuple(own), scores=((-1, 1),) * 10, bits=1)
        less = {"add_remove": 0.55, "replace_one": 0.95}[neighbours]  # moments, with noise from a cube
        assert noise < less * ask.sd(Question("gram", signs, Fraction(1)))


@pytest.mark.parametrize(
    ("sizes", "kind"), [([2] * 60, "boolean"), ([4] * 20, "nominal"), ([2, 3, 6] * 7, "nominal")]
)
def test_independent_columns_have_no_axis_far_above_the_edge_of_the_noise(sizes, kind):
    """The largest eigenvalue of noise of some 60 free cells varies by 4 %: 40 % are beyond any chance."""
    rng = np.random.default_rng(1)
    omega, rows = table(5000, sizes, kind)
    rows = {name: rng.permutation(codes) for name, codes in rows.items()}
    asked, answer, found = asked_and_found(omega, rows, 1.0, 1e-6)
    largest = float(np.linalg.eigvalsh(found.kept)[-1])
    assert 0.6 * found.edge < largest < 1.4 * found.edge
    assert found.edge <= expected_edge(asked, answer.sd, sizes, 5000) * 1.001


def test_noise_in_rare_cells_does_not_turn_the_axes():
    rng = np.random.default_rng(0)
    n, count = 1000, 102
    columns = tuple(Column(f"c{j}", "nominal", categories=tuple(map(str, range(count)))) for j in range(3))
    mean = np.append([0.5, 0.4], np.full(100, 0.001))
    exact = np.zeros((count, count))
    exact[:2, :2] = [[0.1, -0.1], [-0.1, 0.1]]
    values = [n * (np.outer(mean, mean) + exact) + rng.laplace(0, 20, (count, count)) for _ in range(3)]
    own = [
        Attribute(c, Marginal(np.arange(count), np.ones(count, np.int64), [n * mean]), np.arange(count))
        for c in columns
    ]
    whole = np.rint(np.concatenate([value.ravel() for value in values])).astype(np.int64)
    asked = Question("gram", Gram(tuple(a.axis for a in own)), Fraction(1))
    answer = Answer(whole, (len(whole),), "laplace", 20 * 2**0.5)
    found = covariances(asked, answer, own, np.array([float(n)]))[0]
    first = np.linalg.eigh(found.kept)[1][:, -1]
    common = np.concatenate([np.arange(2) + count * i for i in range(3)])
    assert (first[common] ** 2).sum() > 0.9


# --- the rule ------------------------------------------------------------------------------------------


def mixture(n: int, d: int, seed: int = 0) -> tuple[Domain, dict[str, np.ndarray]]:
    """Booleans of three classes that nobody declared."""
    rng = np.random.default_rng(seed)
    chances, classes = rng.uniform(0.1, 0.9, (3, d)), rng.integers(0, 3, n)
    rows = rng.random((n, d)) < chances[classes]
    columns = tuple(Column(f"b{j}", "boolean", categories=("false", "true")) for j in range(d))
    return Domain(columns), {f"b{j}": rows[:, j].astype(np.int64) for j in range(d)}


def pair_error(real: dict[str, np.ndarray], made: dict[str, np.ndarray]) -> float:
    """Of the chances that two Booleans are both true, root mean square."""
    names = list(real)
    both = [[(rows[a] & rows[b]).mean() for a, b in combinations(names, 2)] for rows in (real, made)]
    return float(np.sqrt(np.mean((np.array(both[0]) - np.array(both[1])) ** 2)))


def released(omega, rows, epsilon, params=None):
    ask, accountant, bill, _ = asking(rows, omega, epsilon)
    model = MECHANISM.run(ask, omega, params or Params(), MECHANISM.stages)
    assert accountant.spent == accountant.total
    return model, bill


def test_many_booleans_get_axes_where_one_cell_of_a_pair_table_would_be_noise():
    """In a pair table there are 7 rows for each row of noise here, and the axes stand out all the same."""
    omega, rows = mixture(40_000, 40)
    model, _ = released(omega, rows, 1.5)
    assert model.facts["axes"][0] >= 2  # both are eight times above the edge
    made = drawn(model, 40_000)
    rng = np.random.default_rng(1)
    alone = {name: rng.permutation(codes) for name, codes in rows.items()}
    assert pair_error(rows, made) < 0.35 * pair_error(rows, alone)


def test_without_an_axis_the_sums_are_the_marginals_once_more():
    omega, rows = mixture(40_000, 40)
    model, bill = released(omega, rows, 2.0, Params(axes=0))
    assert (model.facts["axes"], model.facts["cells"]) == ([0], [1])
    assert {charge.question.step for charge in bill} == {"total", "columns", "gram", "sums"}
    made = drawn(model, 40_000)
    # The two counts of a column have sd 71 and 74, of which 36 are left together; a mean square of 40
    # such has a sd of 0.3 of its mean, so that four times the mean is ten deviations away.
    off = np.array([made[name].sum() - codes.sum() for name, codes in rows.items()])
    assert np.mean(off**2) < 4 * 36**2
    (own,) = attributes(Domain(omega.columns[:1]), {"b0": np.repeat([0, 1], [600, 400])})
    mixed = _alone(np.array([700, 340]), [own], 0, 1000.0, 0.25)
    assert mixed.tables[0][0] == pytest.approx([620.0, 380.0])
