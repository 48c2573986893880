"""factor: spends exactly its budget, keeps types, missing and what columns have to do with each other; by
rows it is private where the printed algorithm is not (each such place has a test that the printed one fails).
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.factor import factor
from dpsynth_cli.mechanisms.factor import printed as factor_rows
from dpsynth_cli.mechanisms.shared.crossed import pair_noise
from dpsynth_cli.mechanisms.shared.oneway import ask_marginals, room_for
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.questions import Gram, Moments, Question, RowScores
from dpsynth_cli.trusted.sums.tally import Tally
from tests.asking import asking, drawn
from tests.mechanisms.plain_ask import PlainAsk

AGE = Column("age", "integer", lower=17, upper=90, nullable=True)
GAIN = Column("gain", "integer", lower=0, upper=99_999)
SCORE = Column("score", "continuous", lower=-1.0, upper=1.0)
STAGE = Column("stage", "ordinal", categories=("low", "mid", "high"), nullable=True)
COLOUR = Column("colour", "nominal", categories=tuple(f"c{i}" for i in range(7)))
LABEL = Column("label", "boolean", categories=("false", "true"))
ALL = (AGE, GAIN, SCORE, STAGE, COLOUR, LABEL)
STAGES = dict(factor.MECHANISM.stages)


def table(rows: int, seed: int = 1) -> dict[str, np.ndarray]:
    """One hidden factor behind every column; colours in no order of it."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal(rows)

    def like(part: float) -> np.ndarray:
        return part * hidden + math.sqrt(1 - part**2) * rng.standard_normal(rows)

    colours = np.array([3, 0, 5, 1, 6, 2, 4])
    return {
        "age": np.where(like(0.6) > 1.3, AGE.size, np.clip(20 + 12 * like(0.8), 0, 73).astype(int)),
        "gain": np.where(like(0.7) < 0.8, 0, rng.integers(1, 100_000, rows)),
        "score": (np.clip(0.5 + like(0.8) / 8, 0, 0.999) * GRID).astype(int),
        "stage": np.digitize(like(0.7), [-0.5, 0.7, 2.0]),
        "colour": colours[np.digitize(like(0.9), [-1.2, -0.7, -0.2, 0.2, 0.7, 1.2])],
        "label": (like(0.7) > 0.7).astype(int),
    }


def release(codes, omega, epsilon, delta=None, rows=None, **params):
    ask, accountant, _, recorded = asking(codes, omega, epsilon, delta)
    model = factor.run(ask, omega, factor.Params(**params), STAGES)
    assert accountant.spent == accountant.total
    return model, drawn(model, max(1, model.total) if rows is None else rows), recorded


def mutual(one: np.ndarray, other: np.ndarray) -> float:
    """The mutual information of two columns of codes."""
    joint = np.histogram2d(one, other, bins=[np.arange(one.max() + 2), np.arange(other.max() + 2)])[0]
    joint /= joint.sum()
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / apart[there])).sum())


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize(("strata", "factors"), [(None, None), ("stage", 2)])
def test_the_budget_is_spent_exactly_and_rows_are_as_declared(neighbours, delta, strata, factors):
    omega = Domain(ALL, neighbours, strata=strata)
    model, made, recorded = release(table(3000), omega, 3.0, delta, rows=1001, factors=factors)
    assert any(isinstance(question.statistic, Gram) for question, _ in recorded)
    assert all(len(made[c.name]) == 1001 for c in ALL)
    assert all(made[c.name].min() >= 0 and made[c.name].max() < c.codes for c in ALL)
    assert abs(model.total - 3000) < 300


def test_columns_of_every_type_keep_what_they_have_to_do_with_each_other():
    codes = table(20_000)
    _, made, _ = release(codes, Domain(ALL), 3.0, 1e-9)
    coarse = {"age": 10, "gain": 20_000, "score": GRID // 8, "stage": 1, "colour": 1, "label": 1}
    for one, other in (("age", "colour"), ("colour", "label"), ("stage", "score"), ("gain", "label")):
        real, ours = (mutual(t[one] // coarse[one], t[other] // coarse[other]) for t in (codes, made))
        assert 0.3 * real < ours < 2.5 * real, (one, other, real, ours)


def test_marginals_come_out_and_numbers_stay_fine():
    codes = table(20_000)
    _, made, _ = release(codes, Domain(ALL), 3.0, 1e-9)
    for name in ("stage", "colour", "label"):
        real, ours = (np.bincount(t[name], minlength=8) / len(t[name]) for t in (codes, made))
        assert np.abs(real - ours).sum() / 2 < 0.02
    assert abs((made["gain"] == 0).mean() - (codes["gain"] == 0).mean()) < 0.02
    assert abs((made["age"] == AGE.size).mean() - (codes["age"] == AGE.size).mean()) < 0.02
    assert len(np.unique(made["score"])) > 5000
    assert len(np.unique(made["gain"])) > 500


def test_missing_goes_with_other_columns():
    codes = table(20_000)
    _, made, _ = release(codes, Domain(ALL), 3.0, 1e-9)
    for t in (codes, made):
        lost = t["age"] == AGE.size
        assert t["label"][lost].mean() > 1.5 * t["label"][~lost].mean()


def renamed(rows: int) -> tuple[Domain, dict[str, np.ndarray]]:
    """Half of `like` is `one` in other names: ten names need nine dimensions, and latents have three."""
    rng = np.random.default_rng(0)
    columns = tuple(
        Column(name, "nominal", categories=tuple("abcdefghij")) for name in ("one", "like", "free")
    )
    one, other, free = rng.integers(10, size=(3, rows))
    return Domain(columns), {
        "one": one,
        "like": np.where(rng.random(rows) < 0.5, rng.permutation(10)[one], other),
        "free": free,
    }


def apart(codes, made, one: str, other: str) -> float:
    """The total variation distance of the tables of two columns of ten categories."""
    tables = [np.bincount(10 * t[one] + t[other], minlength=100) / len(t[one]) for t in (codes, made)]
    return float(np.abs(tables[0] - tables[1]).sum() / 2)


def test_exchanges_add_what_normals_cannot_carry():
    omega, codes = renamed(10_000)
    _, made, _ = release(codes, omega, 3.0, 1e-9)
    _, normal, _ = release(codes, omega, 3.0, 1e-9, factors=1000)  # all factors, but nothing beside them
    assert apart(codes, made, "one", "like") < 0.05
    assert apart(codes, made, "one", "free") < 0.05
    assert apart(codes, normal, "one", "like") > 0.15


def test_fewer_factors_are_fewer():
    rng = np.random.default_rng(0)
    pairs = {f"c{i}": rng.integers(2, size=20_000) for i in range(0, 8, 2)}
    for i in range(1, 8, 2):
        pairs[f"c{i}"] = np.where(rng.random(20_000) < 0.9, pairs[f"c{i - 1}"], rng.integers(2, size=20_000))
    omega = Domain(tuple(Column(f"c{i}", "nominal", categories=("a", "b")) for i in range(8)))
    kept = []
    for factors in (None, 1):
        _, made, _ = release(pairs, omega, 5.0, 1e-9, factors=factors)
        kept.append([mutual(made[f"c{i}"], made[f"c{i + 1}"]) > 0.2 for i in range(0, 8, 2)])
    assert sum(kept[0]) == 4
    assert sum(kept[1]) <= 2


def test_where_noise_is_loud_each_column_is_released_by_itself_and_the_audit_says_so():
    model, _, recorded = release(table(2000), Domain(ALL), 0.05)
    assert not any(isinstance(question.statistic, Gram) for question, _ in recorded)
    assert "by itself" in model.notes[0]


def test_where_classes_share_the_rows_pairs_are_given_up_earlier():
    def asked(strata: str | None) -> bool:
        ask = PlainAsk(Domain(ALL, "replace_one", strata=strata), table(6000), epsilon=1.0)
        widths = [factor.CELLS] * len(ask.omega.modelled)
        sizes = Sizes(np.full(ask.omega.classes, 6000 / ask.omega.classes), 0.0)
        return pair_noise(ask, ask.omega, widths, sizes, Fraction(1, 20)) <= factor.LOUD

    assert asked(None)
    assert not asked("colour")


def test_of_two_cells_only_the_difference_is_asked_and_of_all_columns_at_once():
    omega, codes = Domain((SCORE, GAIN, STAGE, COLOUR, LABEL), strata="label"), table(4000)
    ask, _, _, recorded = asking(codes, omega, 50.0)
    sizes = Sizes(np.bincount(codes["label"]).astype(float), 1.0)
    found = ask_marginals(ask, omega, omega.modelled, sizes, Fraction(1), depth=1)
    assert [q.statistic.columns for q, _ in recorded if isinstance(q.statistic, Moments)] == [
        ("score", "gain")
    ]
    assert sum(q.share for q, _ in recorded) == 1
    for column in (SCORE, GAIN):
        upper = np.bincount(codes["label"], weights=codes[column.name] * 2 >= column.size)
        # The noise's deviation is 0.1.
        assert np.allclose([mass[1] for mass in found[column.name].masses], upper, atol=20)
        assert found[column.name].first.tolist() == [0, column.size // 2]


def test_few_rows_leave_classes_alike_where_only_noise_tells_them_apart():
    kinds = tuple(Column(f"k{i}", "nominal", categories=tuple("abcd")) for i in range(16))
    omega = Domain((*kinds, LABEL), "replace_one", strata="label")
    rng = np.random.default_rng(0)
    codes = {c.name: rng.integers(c.codes, size=200) for c in omega}
    sizes = Sizes(np.bincount(codes["label"]).astype(float), 0.0)

    def apart(depth: int) -> float:
        ask = PlainAsk(omega, codes, epsilon=0.5)
        found = ask_marginals(ask, omega, kinds, sizes, Fraction(1), depth=depth).values()
        parts = [[mass / mass.sum() for mass in marginal.masses] for marginal in found]
        return float(np.mean([np.abs(one - other).sum() / 2 for one, other in parts]))

    assert apart(1) < 0.7 * apart(2)  # depth 2: as they were counted, with the same noise


def test_where_sizes_come_from_the_columns_both_cells_are_counted():
    omega = Domain((SCORE, GAIN), strata=None)
    ask, _, _, recorded = asking(table(4000), omega, 50.0)
    ask_marginals(ask, omega, omega.modelled, Sizes(np.array([4000.0]), math.inf), Fraction(1), depth=1)
    assert not any(isinstance(question.statistic, Moments) for question, _ in recorded)


def test_few_rows_make_few_cells():
    codes = table(300)
    _, _, recorded = release(codes, Domain(ALL, "replace_one", strata="label"), 0.5)  # n is public
    assert not any(isinstance(question.statistic, Gram) for question, _ in recorded)
    first = next(answer for question, answer in recorded if question.step == "columns")
    assert first.lengths[0] <= 8
    ask, *_ = asking(codes, Domain(ALL), 0.5)
    depths = [room_for(ask, Domain(ALL), Sizes(np.array([n]), 0.0), Fraction(1)) for n in (1e2, 2e2, 2e3)]
    assert depths == [1, 2, None]


@pytest.mark.parametrize("release_as", ["model", "rows"])
@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("epsilon", [0.01, 500.0])
def test_few_rows_release_at_any_epsilon(release_as, rows, epsilon):
    one = Column("one", "integer", lower=3, upper=3)
    omega = Domain((*ALL, one), "replace_one")
    codes = {c.name: np.full(rows, c.codes - 1) for c in omega}
    model, made, _ = release(codes, omega, epsilon, rows=4, release=release_as)
    assert model.total == rows
    assert set(made["one"]) == {0}


def test_five_thousand_categories_work():
    many = Column("many", "nominal", categories=tuple(f"c{i}" for i in range(5000)))
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=20_000)
    codes = {"many": np.minimum(rng.geometric(0.01, 20_000) - 1 + 200 * label, 4999), "label": label}
    model, made, _ = release(codes, Domain((many, LABEL)), 2.0)
    assert model.facts["cells"]["many"] <= factor.CATEGORIES
    assert mutual(made["many"] // 200, made["label"]) > 0.2


@pytest.mark.parametrize("release_as", ["model", "rows"])
def test_the_same_answers_and_seed_give_the_same_rows(release_as):
    ask, *_ = asking(table(2000), Domain(ALL, "replace_one"), 3.0)
    model = factor.run(ask, Domain(ALL, "replace_one"), factor.Params(release=release_as), STAGES)
    one, other, third = drawn(model, 300, 5), drawn(model, 300, 5), drawn(model, 300, 6)
    assert all((one[name] == other[name]).all() for name in one)
    assert any((one[name] != third[name]).any() for name in one)


# --- release: rows ------------------------------------------------------------------------------------

PUBLIC_N = Domain(ALL, "replace_one")


def the_question(recorded) -> RowScores:
    return next(q.statistic for q, _ in recorded if isinstance(q.statistic, RowScores))


def coordinates(question, codes, omega=PUBLIC_N) -> np.ndarray:
    tally = Tally([Question("scores", question, Fraction(1))], omega)
    tally.add(codes, len(next(iter(codes.values()))))
    return tally.sums()[0].reshape(-1, len(question.weights))


def test_by_rows_there_is_a_row_for_each_row_and_little_noise_keeps_what_it_was():
    codes = table(3000)
    model, made, _ = release(codes, PUBLIC_N, 100_000.0, release="rows", factors=12)
    assert model.total == len(made["age"]) == 3000
    real, ours = (mutual(t["colour"], t["label"]) for t in (codes, made))
    assert 0.3 * real < ours < 2 * real
    assert len(drawn(model, 10)["age"]) == 10


def test_by_rows_the_audit_warns_and_shows_how_little_is_left():
    model, _, _ = release(table(500), PUBLIC_N, 1.0, release="rows")
    assert "not recommended" in model.notes[0]
    assert "local differential privacy" in model.notes[0]
    assert model.facts["signal_to_noise"] < 0.2


def test_by_rows_needs_a_public_number_of_rows_and_no_strata():
    rows = factor.Params(release="rows")
    assert "replace_one" in factor.fits(Domain(ALL), rows)[0]
    assert "strata" in factor.fits(Domain(ALL, "replace_one", strata="label"), rows)[0]
    assert factor.fits(PUBLIC_N, rows) == factor.fits(Domain(ALL), factor.Params()) == []


def test_more_rows_than_fit_in_memory_are_released_as_a_model(monkeypatch):
    monkeypatch.setattr(factor, "MOST_SCORES", 1000)
    model, _, recorded = release(table(2000), PUBLIC_N, 5.0, release="rows")
    assert "released as a model" in model.notes[0]
    assert not any(isinstance(q.statistic, RowScores) for q, _ in recorded)


def test_sorted_noise_shows_one_record_and_ours_does_not():
    """Printed Algorithm 2 (E27): an empty last category shows by increments that are impossible otherwise."""
    rng = np.random.default_rng(0)
    n, draws = 200, 4000

    def printed(cumulated: list[float]) -> np.ndarray:
        f = np.array(cumulated) + np.sort(rng.laplace(0, 1 / n, (draws, 3)), axis=1)
        return (f[:, 2] - f[:, 1]) / (f[:, 2] - f[:, 0])

    event = 1 / (2 * n)
    assert (printed([0, 1, 1]) < event).mean() > 0.1
    assert (printed([0, (n - 1) / n, 1]) < event).sum() == 0

    omega = Domain((LABEL, COLOUR), "replace_one")
    seen = []
    for last in (0, 1):
        codes = {"label": np.r_[np.zeros(n - 1, int), last], "colour": np.zeros(n, int)}
        _, _, recorded = release(codes, omega, 4.0, rows=1, release="rows")
        _, answer = next((q, a) for q, a in recorded if q.step == "columns")
        seen.append((answer.sd, answer.noise))
        assert len(answer.values) == 2
    assert seen[0] == seen[1]
    assert seen[0][1] == "discrete_laplace"  # independent for each count, of full support


def test_columns_share_one_budget():
    """Printed, epsilon_3 is spent once for each ordinal column (E28): with 12 of them, 12 times."""
    omega = Domain(
        tuple(Column(f"c{i}", "ordinal", categories=("a", "b", "c")) for i in range(12)), "replace_one"
    )
    codes = {c.name: np.zeros(100, int) for c in omega}
    _, _, recorded = release(codes, omega, 1.0, release="rows")
    stages = [STAGES[name] for name in ("marginals", "gram", "scores")]
    own = sum(q.share for q, _ in recorded if q.step == "columns")
    assert float(own) == pytest.approx(stages[0] / sum(stages))
    assert sum(q.share for q, _ in recorded) == 1


def test_one_row_changed_moves_no_other_row():
    """Printed, thresholds come from the true frequencies (E29): one record moves every row's latent score."""
    codes = table(300)
    changed = {name: values.copy() for name, values in codes.items()}
    for name in changed:
        changed[name][7] = (changed[name][7] + 1) % PUBLIC_N[name].codes

    def printed(t: dict[str, np.ndarray]) -> np.ndarray:
        part = np.bincount(t["stage"], minlength=4) / len(t["stage"])
        return factor_rows.normal_scores(np.maximum(part, 1e-9))[t["stage"]]

    others = np.arange(300) != 7
    assert (printed(codes) != printed(changed))[others].sum() > 100

    question = the_question(release(codes, PUBLIC_N, 5.0, release="rows")[2])
    one, other = coordinates(question, codes), coordinates(question, changed)
    assert (one == other).all(axis=1)[others].all()
    assert (one[7] != other[7]).any()


def test_the_number_of_factors_says_nothing_about_rows():
    """Printed, r(c) is counted in the true eigenvalues (E30): one record shows with probability 1. Here it is
    stated, or counted in the noisy ones as far as they stand above their noise."""

    def printed(x: np.ndarray) -> int:
        share = np.sort(np.linalg.eigvalsh(x.T @ x))[::-1]
        return int(np.argmax(np.cumsum(share) / share.sum() > 0.8 + 1e-12)) + 1

    x = np.eye(2)[[0] * 8 + [1] * 2]
    near = np.eye(2)[[0] * 9 + [1]]
    assert printed(x) != printed(near)

    even = {c.name: np.random.default_rng(0).integers(c.codes, size=300) for c in PUBLIC_N}
    for codes in (table(300), even):
        _, _, recorded = release(codes, PUBLIC_N, 5.0, release="rows", factors=2)
        assert len(the_question(recorded).weights) == 2
        _, _, loud = release(codes, PUBLIC_N, 0.01, release="rows")
        _, _, quiet = release(codes, PUBLIC_N, 1e6, release="rows")
        assert len(the_question(loud).weights) == 1 < len(the_question(quiet).weights)
    rng = np.random.default_rng(0)
    spectrum = np.diag([6.0, 3.0, 0.5, 0.3, 0.2])  # 0.6, then 0.9 of all information
    noise = rng.normal(0, 0.05, (5, 5))
    assert factor_rows.number_of_factors(spectrum + (noise + noise.T) / 2, 0.05) == 2
    assert factor_rows.number_of_factors(np.zeros((5, 5)), 1.0) == 1


def test_no_row_is_longer_than_its_bound():
    """Printed, latent scores are unbounded normals (E31): rows are longer than the 1 that noise is for."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 22))
    assert (np.linalg.norm(x, axis=1) > 1).all()
    loadings = np.linalg.qr(rng.standard_normal((22, 3)))[0]
    assert np.abs(x @ loadings - (x @ loadings)[::-1]).sum(axis=1).max() > 2 * 3  # Lemma 6 says 2 r at most

    question = the_question(release(table(300), PUBLIC_N, 5.0, release="rows")[2])
    every = {c.name: rng.integers(c.codes, size=5000) for c in PUBLIC_N}
    for bound in (question.bound, question.bound // 4):  # of the second, some rows are certainly clipped
        asked = dataclasses.replace(question, bound=bound)
        lengths = (coordinates(asked, every).astype(object) ** 2).sum(axis=1)
        assert max(lengths) <= bound**2
    assert max(lengths) > 0.9 * bound**2
