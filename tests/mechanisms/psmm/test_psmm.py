"""psmm: what it spends, what it keeps of a table, and that no table or budget makes it fail."""

from __future__ import annotations

import dataclasses
import signal

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.psmm import lattices, psmm
from dpsynth_cli.mechanisms.psmm.psmm import BLOCK_ROWS, MECHANISM, Params, fits
from dpsynth_cli.numeric.lattice import Axis, Lattice
from dpsynth_cli.numeric.transport import closest, closest_by_flow
from dpsynth_cli.questions import Asking
from tests.asking import asking, drawn

RELATIONS = ("add_remove", "replace_one")


def continuous(name: str, **more) -> Column:
    return Column(name, "continuous", lower=0.0, upper=1.0, **more)


def nominal(name: str, labels: str = "abcd", **more) -> Column:
    return Column(name, "nominal", categories=tuple(labels), **more)


def square(neighbours: str = "replace_one", **more) -> Domain:
    return Domain((continuous("x"), continuous("y")), neighbours, **more)


def mixed(neighbours: str = "replace_one", **more) -> Domain:
    columns = (
        continuous("x", nullable=True),
        nominal("s", nullable=True),
        Column("o", "ordinal", categories=("low", "mid", "high")),
        Column("day", "date", lower=18262, upper=18262 + 365),
        Column("b", "boolean", categories=("false", "true")),
    )
    return Domain(columns, neighbours, **more)


def uniform(omega: Domain, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {column.name: rng.integers(column.codes, size=n) for column in omega}


def clusters(n: int, d: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = 0.1 + 0.8 * rng.random((5, d))
    points = np.clip(centres[rng.integers(5, size=n)] + rng.normal(0, 0.05, (n, d)), 0, 1 - 1e-9)
    return {name: (points[:, a] * GRID).astype(np.int64) for a, name in enumerate("xyz"[:d])}


def released(omega, codes, epsilon=1.0, delta=None, params=None):
    """A model over the real border, with what it asked."""
    ask, accountant, bill, recorded = asking(codes, omega, epsilon, delta)
    model = MECHANISM.run(ask, omega, params or Params(), MECHANISM.stages)
    assert accountant.spent == accountant.total
    return model, bill, recorded


def check_valid(model, omega, rows):
    table = drawn(model, rows)
    if rows:
        assert set(table) == {column.name for column in omega}
    for column in omega.columns if rows else ():
        assert len(table[column.name]) == rows
        assert table[column.name].dtype == np.int64
        assert table[column.name].min() >= 0
        assert table[column.name].max() < column.codes


# --- the budget ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["linf", "l1", "l2"])
@pytest.mark.parametrize("strata", [None, "s", "b"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_spends_exactly_its_budget_and_releases_valid_rows(neighbours, delta, strata, metric):
    omega = mixed(neighbours, strata=strata)
    model, _, _ = released(omega, uniform(omega, 700), 1.0, delta, Params(metric=metric))
    for rows in (model.total, 1, 2000):
        check_valid(model, omega, rows)


def test_replacing_a_row_moves_two_cells_and_adding_one_hides_the_total():
    """E3: as printed, (n_i + Lap(1/epsilon)) / n is private under neither relation."""
    omega = square("replace_one")
    model, bill, _ = released(omega, uniform(omega, 500))
    free, counts = bill
    assert (free.price.cost, free.price.noise) == (0, "none")
    assert (counts.sensitivity.l1, counts.price.parameter) == (2, 2)
    assert model.total == 500
    omega = square("add_remove")
    models = [released(omega, uniform(omega, 500)) for _ in range(12)]
    total, counts = models[0][1]
    assert (total.sensitivity.l1, total.price.noise) == (1, "discrete_laplace")
    assert total.price.cost + counts.price.cost == 1
    assert len({model.total for model, _, _ in models}) > 3  # not one of them knows n


def test_a_public_hint_saves_the_share_of_the_total():
    omega = square("add_remove", rows_hint=4000)
    model, bill, _ = released(omega, uniform(omega, 3000))
    (counts,) = bill
    assert counts.price.cost == 1
    assert model.facts["lattices"] == [[22, 22]]
    assert abs(model.total - 3000) < 500  # what the cells add up to, not the hint


def test_the_same_answers_and_the_same_seed_give_the_same_rows():
    omega = mixed("add_remove", strata="s")
    model, bill, recorded = released(omega, uniform(omega, 800))
    answers = [answer for _, answer in recorded]
    sd = {charge.question.step: charge.price.sd for charge in bill}
    given = iter(answers)
    again = MECHANISM.run(
        Asking(lambda questions: [next(given) for _ in questions], lambda question: sd[question.step]),
        omega,
        Params(),
        MECHANISM.stages,
    )
    assert again.total == model.total
    first, second = drawn(model, 5000, seed=3), drawn(again, 5000, seed=3)
    assert all(np.array_equal(first[name], second[name]) for name in first)


# --- what a release keeps --------------------------------------------------------------------------------


def test_without_noise_every_cell_has_its_rows_and_no_other():
    """E8, E9: nothing is lost at the edges, the upper bound is in the last cell, points are inside cells."""
    omega = square("replace_one")
    codes = uniform(omega, 3000)
    codes["x"][:50], codes["y"][:50] = GRID - 1, 0
    model, _, _ = released(omega, codes, 1000.0, params=Params(cells=64))
    assert model.facts["lattices"] == [[8, 8]]
    table = drawn(model, model.total)

    def counts(rows):
        return np.histogram2d(rows["x"], rows["y"], bins=8, range=[[0, GRID], [0, GRID]])[0]

    assert np.array_equal(counts(codes), counts(table))
    inside = (table["x"] * 8 % GRID) / GRID
    assert 0.45 < inside.mean() < 0.55
    assert inside.std() == pytest.approx(12**-0.5, abs=0.02)


def test_without_noise_categories_and_missing_values_keep_their_counts():
    omega = Domain((continuous("x", nullable=True), nominal("s", nullable=True)), "replace_one")
    rng = np.random.default_rng(1)
    n = 5000
    codes = {
        "x": np.where(rng.random(n) < 0.3, GRID, rng.integers(GRID, size=n)),
        "s": rng.choice(5, size=n, p=[0.5, 0.3, 0.1, 0.0, 0.1]),
    }
    table = drawn(released(omega, codes, 1000.0)[0], n)
    assert (table["x"] == GRID).sum() == (codes["x"] == GRID).sum()
    assert np.array_equal(np.bincount(table["s"], minlength=5), np.bincount(codes["s"], minlength=5))


def test_a_release_has_exactly_n_rows_or_as_many_as_asked_for_in_proportion():
    """E7: the size is n, not a least common multiple of denominators."""
    omega = square("replace_one")
    codes = clusters(1234)
    model, _, _ = released(omega, codes)
    assert model.total == 1234
    own, more = drawn(model, model.total), drawn(model, 123_400)
    assert len(own["x"]) == 1234

    def counts(rows):
        return np.histogram2d(rows["x"], rows["y"], bins=4, range=[[0, GRID], [0, GRID]])[0]

    assert np.abs(counts(more) / 100 - counts(own)).max() < 8


@pytest.mark.parametrize("rows", [1000, 2 * BLOCK_ROWS])
def test_the_points_of_a_cell_fill_it_evenly_from_a_random_start(rows):
    """Independent points would leave some of the 100 strips and boxes with a third less than their part."""
    omega = square("replace_one")
    model, _, _ = released(omega, uniform(omega, 100), params=Params(cells=1))
    table = drawn(model, rows)
    for name in ("x", "y"):
        strips = np.bincount(table[name] * 100 // GRID, minlength=100) / (rows / 100)
        assert 0.7 < strips.min() <= strips.max() < 1.3
    boxes = np.histogram2d(table["x"], table["y"], bins=10)[0] / (rows / 100)
    assert 0.7 < boxes.min() <= boxes.max() < 1.3
    assert np.corrcoef(table["x"], table["y"])[0, 1] == pytest.approx(0, abs=0.02)
    assert len(np.unique(table["x"] * GRID + table["y"])) > 0.999 * rows
    assert table["x"][0] != drawn(model, rows, seed=1)["x"][0]
    firsts = [drawn(model, 1, seed)["x"][0] / GRID for seed in range(300)]
    assert np.mean(firsts) == pytest.approx(0.5, abs=0.1)
    assert np.std(firsts) == pytest.approx(12**-0.5, abs=0.05)


def test_many_rows_come_in_blocks_that_add_up():
    omega = square("replace_one")
    model, _, _ = released(omega, clusters(500))
    rows = 3 * BLOCK_ROWS + 17
    sizes = [len(block["x"]) for block in model.draw(rows, np.random.default_rng(0))]
    assert sum(sizes) == rows
    assert max(sizes) < 1.01 * BLOCK_ROWS


def test_rows_come_in_random_order():
    omega = square("replace_one")
    table = drawn(released(omega, clusters(4000))[0], 4000)
    assert abs(np.corrcoef(np.arange(4000), table["x"])[0, 1]) < 0.1


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_classes_have_their_sizes_and_their_own_distributions(neighbours):
    omega = Domain((continuous("x"), nominal("s", "ab", nullable=True)), neighbours, strata="s")
    rng = np.random.default_rng(2)
    label = rng.choice(3, size=6000, p=[0.6, 0.35, 0.05])
    low, high = rng.integers(GRID // 4, size=6000), rng.integers(3 * GRID // 4, GRID, size=6000)
    model, _, _ = released(omega, {"x": np.where(label == 0, low, high), "s": label}, 5.0)
    if neighbours == "replace_one":
        assert model.total == 6000
    table = drawn(model, model.total)
    assert np.abs(np.bincount(table["s"], minlength=3) - np.bincount(label)).max() < 150
    assert (table["x"][table["s"] == 0] < GRID // 4).mean() > 0.95
    assert (table["x"][table["s"] == 1] > GRID // 2).mean() > 0.95


@pytest.mark.parametrize(("kind", "bound"), [("clusters", 0.025), ("uniform", 0.025)])
def test_four_thousand_rows_are_close_to_the_data(kind, bound):
    """W1 on a 64 x 64 lattice; measured 0.010 and 0.012, with standard deviations below 0.002."""
    omega = square("replace_one")
    codes = clusters(4000) if kind == "clusters" else uniform(omega, 4000)
    model, _, _ = released(omega, codes)
    table = drawn(model, 4000)
    lattice = Lattice((Axis(64), Axis(64)), 64)
    at = [
        np.bincount((t["x"] * 64 // GRID) * 64 + t["y"] * 64 // GRID, minlength=64**2) for t in (codes, table)
    ]
    distance = closest_by_flow(at[0] - at[1], 0, lattice.graph(), lattice.diameter).distance
    assert distance / 64 / 4000 < bound


def test_rows_lean_to_the_fuller_neighbours():
    """Between a full half and an empty one, rows of the last full cells are mostly on the full side; uniform
    places would be as often on either."""
    rng = np.random.default_rng(0)
    codes = {
        "x": (rng.triangular(0, 0.02, 1, 40_000) * GRID).astype(np.int64),
        "y": rng.integers(GRID, size=40_000),
    }
    model, _, _ = released(square(), codes, params=Params(cells=16))
    side, last = model.facts["lattices"][0][0], drawn(model, 40_000)["x"]
    inside = last[last >= GRID * (side - 1) // side] * side / GRID % 1
    assert np.mean(inside < 0.5) > 0.55


# --- the number of cells ---------------------------------------------------------------------------------


def test_auto_takes_epsilon_n_over_8_cells():
    cube = Domain((continuous("x"), continuous("y"), continuous("z")), "replace_one")
    assert released(square(), clusters(4000))[0].facts["lattices"] == [[22, 22]]
    assert released(square(), clusters(4000), 0.25)[0].facts["lattices"] == [[11, 11]]
    assert released(square(), clusters(4200))[0].facts["lattices"] == [[23, 23]]  # the nearest to 525
    assert released(cube, clusters(4000, 3))[0].facts["lattices"] == [[8, 8, 8]]
    assert released(square(), clusters(400), 10_000.0)[0].facts["cells"] == 400  # never more than rows


def test_a_line_has_fewer_cells_where_there_are_many_rows_and_each_category_is_a_line():
    line, few = Domain((continuous("x"),), "replace_one"), clusters(400, 1)
    assert released(line, few)[0].facts["cells"] == 50  # epsilon n / 8
    assert released(line, clusters(8000, 1))[0].facts["cells"] == 400  # and not 1000
    both = Domain((continuous("x"), nominal("s")), "replace_one")
    codes = clusters(8000, 1) | {"s": np.arange(8000) % 4}
    assert released(both, codes)[0].facts["cells"] == pytest.approx(4 ** (1 / 3) * 400, rel=0.01)


def test_the_cells_of_a_line_make_its_bound_about_the_least():
    line = Domain((continuous("x"),), "replace_one")
    cells = [psmm.bound(line, Params(cells=m), MECHANISM.stages, 1.0, 64_000).w1 for m in (400, 1600, 8000)]
    assert cells[1] < min(cells[0], cells[2])
    auto = psmm.bound(line, Params(), MECHANISM.stages, 1.0, 64_000).w1
    assert auto == pytest.approx(cells[1])  # (64,000)^(2/3) = 1600


def test_the_audit_says_how_much_longer_paths_are_than_the_distance():
    model, _, _ = released(square(), clusters(4000), params=Params(metric="l2"))
    assert (model.facts["metric"], model.facts["paths_longer_at_most"]) == ("l2", 1.0308)
    assert released(square(), clusters(400))[0].facts["paths_longer_at_most"] == 1


def test_auto_is_capped_by_what_is_feasible(monkeypatch):
    monkeypatch.setattr(lattices, "SECONDS", 0.5)
    lattices.largest.cache_clear()
    omega = Domain((continuous("x"), continuous("y"), continuous("z")), "add_remove", rows_hint=10**9)
    model, _, _ = released(omega, clusters(10, 3))
    assert fits(omega, Params(cells=model.facts["cells"])) == []
    assert fits(omega, Params(cells=2 * model.facts["cells"])) != []
    lattices.largest.cache_clear()


def test_more_cells_than_feasible_are_refused_and_the_most_that_are_is_named():
    omega = square()
    (refusal,) = fits(omega, Params(cells=10**6))
    assert refusal == (
        "psmm could take 25,573 s and 1.9 GB for a lattice of 1,000,000 cells; "
        "mechanism.cells may be at most 62500 here"
    )
    assert fits(omega, Params(cells=62500)) == []
    assert fits(omega, Params(cells=251 * 251)) != []
    (refusal,) = fits(omega, Params(cells=10**30))
    assert refusal == (
        f"psmm cannot have a lattice of {2**60:,} cells; mechanism.cells may be at most 62500 here"
    )


def test_classes_take_their_time_one_after_the_other():
    most = []
    for labels in ("ab", "abcdefgh"):
        omega = Domain((continuous("x"), continuous("y"), nominal("s", labels)), strata="s")
        (refusal,) = fits(omega, Params(cells=10**6))
        assert f"for each of {len(labels)} classes; mechanism.cells may be at most" in refusal
        most.append(int(refusal.split()[-2]))
        assert fits(omega, Params(cells=most[-1])) == []
    assert most[1] < 0.5 * most[0]


def test_classes_share_the_memory():
    """Ten classes of a million cells took 1.7 GB."""
    omega = Domain((continuous("x"), nominal("s", "abcdefghij")), strata="s")
    (refusal,) = fits(omega, Params(cells=10**6))
    assert refusal == (
        "psmm could take 110 s and 2.4 GB for a lattice of 1,000,000 cells for each of 10 classes; "
        "mechanism.cells may be at most 833333 here"
    )


def test_more_columns_than_an_array_has_axes_are_refused_before_anything_is_charged():
    """65 columns failed after the charge."""
    many = tuple(continuous(f"x{i}") for i in range(31))
    assert fits(Domain(many), Params()) == [
        "psmm takes at most 30 columns, and there are 31; use joint or lowdim"
    ]
    model, _, _ = released(omega := Domain(many[:30]), uniform(omega, 50))
    assert len(next(model.draw(10, np.random.default_rng(0)))) == 30


def test_too_many_nullable_columns_are_refused():
    omega = Domain(tuple(continuous(f"x{i}", nullable=True) for i in range(30)))
    (refusal,) = fits(omega, Params())
    assert refusal.endswith(
        "the smallest there is for these columns; release fewer of them, or use marginals"
    )


def test_refusing_takes_no_time_even_for_awkward_steps():
    import time

    scales = (3, 7, 11, 13, 17, 23)
    ordinal = [Column(f"o{k}", "ordinal", categories=tuple(map(str, range(k)))) for k in scales]
    for count in (1, 3, 5):
        start = time.process_time()
        fits(Domain((continuous("x"), *ordinal[:count])), Params(cells=10**6))
        assert time.process_time() - start < 5


def test_the_euclidean_distance_takes_at_most_four_ordered_columns():
    cube = tuple(continuous(f"x{i}") for i in range(5))
    (refusal,) = fits(Domain(cube), Params(metric="l2"))
    assert refusal == (
        "mechanism.metric is l2, for at most 4 columns with an order, and there are 5; set it to linf or l1, "
        "or release fewer columns"
    )
    assert fits(Domain((*cube[:4], nominal("s"))), Params(metric="l2")) == []


def test_few_cells_are_shared_by_categories_and_the_audit_says_so():
    omega = Domain((continuous("x"), nominal("s", "abcdefghij")), "replace_one")
    model, _, _ = released(omega, uniform(omega, 300), params=Params(cells=5))
    assert model.facts["lattices"] == [[1, 5]]
    assert model.notes == ("The categories of s share 5 cells: there were too few for each.",)
    assert set(drawn(model, 300)["s"]) == set(range(10))


# --- no table and no budget makes it fail ----------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e3])
@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_few_rows_give_valid_releases_at_any_epsilon(neighbours, n, epsilon):
    for strata in (None, "s"):
        omega = mixed(neighbours, strata=strata)
        model, _, _ = released(omega, uniform(omega, n), epsilon)
        assert model.total >= 0
        if neighbours == "replace_one":
            assert model.total == n
        for rows in (model.total if model.total < 10_000 else 10, 1, 50):
            check_valid(model, omega, rows)


def test_columns_with_one_value_or_only_missing_ones_are_released():
    omega = Domain(
        (
            Column("one", "integer", lower=3, upper=3),
            Column("none", "integer", lower=3, upper=3, nullable=True),
            continuous("x", nullable=True),
        ),
        "replace_one",
    )
    n = 200
    codes = {"one": np.zeros(n, int), "none": np.ones(n, int), "x": np.full(n, GRID)}
    table = drawn(released(omega, codes, 100.0)[0], n)
    assert (table["one"] == 0).all()
    assert (table["none"] == 1).all()
    assert (table["x"] == GRID).all()
    lone = Domain((Column("one", "integer", lower=3, upper=3),))
    check_valid(released(lone, {"one": np.zeros(9, int)})[0], lone, 9)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_nothing_but_negative_noise_gives_a_valid_release(neighbours):
    omega = square(neighbours, rows_hint=None if neighbours == "replace_one" else 50)
    ask, _, _, _ = asking(uniform(omega, 40), omega, 1.0)

    def lowered(questions):
        answers = ask(questions)
        if questions[0].step != "counts":
            return answers
        return [dataclasses.replace(answer, values=answer.values - 1000) for answer in answers]

    model = MECHANISM.run(Asking(lowered, ask.sd), omega, Params(cells=25), MECHANISM.stages)
    assert model.total == (40 if neighbours == "replace_one" else 0)
    check_valid(model, omega, 40)
    cells = drawn(model, 4000)
    spread = np.histogram2d(cells["x"], cells["y"], bins=5, range=[[0, GRID], [0, GRID]])[0]
    assert spread.max() < 3200  # E6: what is made is not all in one cell
    if neighbours == "add_remove":
        assert model.notes == (
            "The private total is 0: rows, if any are asked for, are uniform over the lattice.",
        )


def test_what_noise_adds_in_all_is_taken_from_all_cells_alike():
    """E6: three rows too many in every cell; by the distance alone they could be taken anywhere."""
    omega = square("replace_one")
    codes = {"x": np.full(400, GRID // 2), "y": np.full(400, GRID // 2)}
    ask, _, _, _ = asking(codes, omega, 1000.0)

    def raised(questions):
        answers = ask(questions)
        more = 3 if questions[0].step == "counts" else 0
        return [dataclasses.replace(answer, values=answer.values + more) for answer in answers]

    model = MECHANISM.run(Asking(raised, ask.sd), omega, Params(cells=25), MECHANISM.stages)
    table = drawn(model, 400)
    for name in ("x", "y"):
        assert set(table[name] * 5 // GRID) == {2}


# --- from the command line -------------------------------------------------------------------------------


def test_check_predicts_time_and_memory_of_the_lattice(dpsynth, people):
    ran = dpsynth("check", people("psmm", neighbours="replace_one"), "--set", "mechanism.cells=8000")
    assert ran.code == 0, ran.err
    assert "Takes at most about 2 s and 18 MB, besides reading and writing.\n" in ran.out
    worst = dpsynth("check", "spec.yaml", "--json").json["chosen"]["at_worst"]
    assert 0 < worst["seconds"] < 1
    assert 0 < worst["bytes"] < 1e7


@pytest.mark.parametrize("command", ["check", "release"])
def test_too_many_cells_are_refused_before_anything_is_spent(dpsynth, people, tmp_path, command):
    people("psmm", more="cells: 1000000")
    ran = dpsynth(command, "spec.yaml")
    assert ran.code == 2
    assert ran.err == (
        "Error: spec.yaml, line 6: psmm could take 54,456 s and 5.9 GB for a lattice of 999,900 cells; "
        "mechanism.cells may be at most 72417 here\n"
        "Nothing was read and nothing was spent. Correct this, then: dpsynth check spec.yaml\n"
    )
    assert not (tmp_path / "ledger.sqlite").exists()


def test_progress_is_told_until_all_cells_are_settled(people, monkeypatch, tmp_path):
    from dpsynth_cli.release.table import release
    from dpsynth_cli.spec.spec import load_spec
    from dpsynth_cli.trusted.ledger.ledger import Ledger

    told = []
    spec = load_spec(people("psmm", neighbours="replace_one"), ())
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        receipt = release(spec, ledger, lambda *what: told.append(what))
    solving = [(done, whole) for what, done, whole in told if what == "solving"]
    cells = receipt.public["mechanism"]["chosen"]["cells"]
    assert solving[0] == (0, cells)
    assert all(done > 0 and whole == cells for done, whole in solving[1:])
    assert sum(done for done, _ in solving) == cells


def test_ctrl_c_while_it_solves_says_what_it_cost_and_the_release_can_be_resumed(
    dpsynth, people, monkeypatch, tmp_path
):
    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return closest(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(psmm, "closest", interrupted)
        ran = dpsynth("release", people("psmm"))
    assert ran.code == 130
    assert "epsilon = 1 of people was spent." in ran.err
    assert not (tmp_path / "out/people.csv").exists()
    assert dpsynth("release", "spec.yaml", "--resume").code == 0
    assert dpsynth("budget", "show", "people", "--json").json["datasets"][0]["spent"][0]["amount"] == "1"


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_one_cell_one_value_and_no_rows_release_and_verify(dpsynth, tmp_path, neighbours, rows):
    (tmp_path / "t.csv").write_text("a,b\n" + "7,3\n" * rows)
    (tmp_path / "spec.yaml").write_text(
        "dpsynth: 1\nname: t\ninput: t.csv\noutput: out.csv\n"
        f"privacy: {{epsilon: 1, neighbours: {neighbours}}}\nmechanism: {{name: psmm, cells: 1}}\n"
        "columns:\n  a: {type: integer, bounds: [7, 7]}\n  b: {type: continuous, bounds: [3.0, 3.0]}\n"
    )
    ran = dpsynth("release", "spec.yaml", "--json")
    assert ran.code == 0, ran.err
    if neighbours == "replace_one":
        assert ran.json["rows"] == rows
    lines = (tmp_path / "out.csv").read_text().split()
    assert lines == ["a,b"] + ["7,3"] * ran.json["rows"]
    assert dpsynth("verify", "out.audit.public.json").code == 0
