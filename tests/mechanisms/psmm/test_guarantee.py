"""The bound on W1 of a psmm release: never exceeded by hostile data, and far from saying nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import linprog

from dpsynth_cli.bounds import Distance
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.pmm.levels import paper_bound
from dpsynth_cli.mechanisms.psmm import guarantee, psmm
from dpsynth_cli.mechanisms.psmm.lattices import lattice_for
from dpsynth_cli.numeric.lattice import Axis, Lattice
from dpsynth_cli.numeric.transport import closest
from tests.asking import Codes, asking, drawn
from tests.mechanisms.pmm.test_pmm import HOSTILE, w1
from tests.numeric.test_transport import straight_lines

STAGES = psmm.MECHANISM.stages


@pytest.mark.parametrize(
    "lattice",
    [
        Lattice((Axis(5), Axis(4)), 5),
        Lattice((Axis(5), Axis(4)), 5, "l1"),
        Lattice((Axis(4, apart=1), Axis(1, apart=2)), 4),
        Lattice((Axis(4, apart=1), Axis(1, apart=2)), 4, "l1"),
        Lattice((Axis(5, 12), Axis(4, 15)), 60, "l2"),
        Lattice((Axis(3, 12), Axis(2, 12), Axis(3, 12)), 36, "l2"),
        Lattice((Axis(4, 12, apart=1), Axis(1, 12, apart=2)), 48, "l2"),
    ],
)
def test_the_size_of_noise_is_the_cost_of_moving_it_to_nothing(lattice):
    """By a dense linear programme: what is in excess goes where it lacks, at the distance of the cells. Under
    l2, where paths on the lattice are longer by `stretch` at most, it is that much more at most."""
    noise = guarantee.laplace(2.0, lattice.size, np.random.default_rng(1))
    noise[0] -= noise.sum()
    cost = lattice.distances().astype(float)
    if lattice.metric == "l2":
        cost = straight_lines(lattice)
    m = lattice.size
    leaves = np.kron(np.eye(m), np.ones(m)) - np.kron(np.ones(m), np.eye(m))
    exact = linprog(cost.ravel(), A_eq=leaves, b_eq=noise, method="highs").fun
    found = closest(noise, 0, lattice).distance
    assert exact * (1 - 1e-9) <= found <= lattice.stretch * exact * (1 + 1e-9)
    assert lattice.stretch == 1 or lattice.metric == "l2"


def hostile(omega: Domain, n: int) -> list[dict[str, np.ndarray]]:
    """All rows the same, in two far places, and everywhere."""
    rng = np.random.default_rng(3)
    point = {c.name: np.full(n, c.codes - 1) for c in omega}
    two = {c.name: np.where(np.arange(n) % 2, c.codes - 1, 0) for c in omega}
    return [point, two, {c.name: rng.integers(c.codes, size=n) for c in omega}]


@pytest.mark.parametrize(
    ("neighbours", "metric"), [("add_remove", "linf"), ("replace_one", "linf"), ("add_remove", "l2")]
)
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_release_is_further_than_its_own_noise_allows(kind, neighbours, metric):
    """Not on average but every time, so no chance is left: what is simulated for the bound, with the noise
    that this release had. Where n is not the private total, a cell may be off by a row when n are drawn."""
    omega, n, epsilon, params = Domain(HOSTILE[kind], neighbours), 300, 2.0, psmm.Params(60, metric)
    found, known = [], psmm.bound(omega, params, STAGES, epsilon, n)
    lattice = lattice_for(omega, params, 1, 1)
    widths, stretch = psmm._widths(omega, lattice, params)
    cell = guarantee.of_a_cell(lattice, widths)
    for codes in hostile(omega, n):
        ask, _, bill, answers = asking(codes, omega, epsilon)
        model = psmm.run(ask, omega, params, STAGES)
        exact = Codes(codes, omega).sums([bill[-1].question])[0]
        noise = np.asarray(answers[-1][1].values) - np.asarray(exact).ravel()
        most = stretch * guarantee.of_noise(noise, n, model.total, lattice) + cell
        apart, far = w1(omega, codes, drawn(model, n), metric), lattice.diameter / lattice.side
        assert apart <= min(far, most + (model.total != n) * lattice.size / n * far)
        found.append(apart / known.w1)
    assert max(found) > 0.01  # and the bound is not beyond all measure: from 0.1 to 0.9 was seen


def test_it_says_more_than_the_printed_bound_of_a_tree_and_less_with_more_rows():
    for d, most in ((1, 0.02), (2, 0.075), (3, 0.17)):
        columns = tuple(Column(f"x{j}", "continuous", lower=0.0, upper=1.0) for j in range(d))
        omega = Domain(columns, "replace_one")
        ours = psmm.bound(omega, psmm.Params(), STAGES, 1.0, 4000).w1
        assert ours < most < paper_bound(columns, 1.0, 4000, "replace_one")
        assert psmm.bound(omega, psmm.Params(), STAGES, 1.0, 16_000).w1 < 0.75 * ours
    # A private total costs a little, and far more where there are few rows.
    known, private = (
        psmm.bound(Domain(columns[:1], relation), psmm.Params(cells=20), STAGES, 1.0, 100).w1
        for relation in ("replace_one", "add_remove")
    )
    assert private > 0.8 * known


def test_categories_that_share_a_cell_are_as_far_apart_as_can_be():
    many = Domain((Column("a", "nominal", categories=tuple(map(str, range(100)))),), "replace_one")
    assert psmm.bound(many, psmm.Params(cells=10), STAGES, 1.0, 10**6).w1 == 1.0
    assert psmm.bound(many, psmm.Params(cells=100), STAGES, 1.0, 10**6).w1 < 0.001


SPEC = """
dpsynth: 1
name: places
input: rows.csv
output: out/rows.csv
rows_hint: 2000
privacy: {epsilon: 2, neighbours: replace_one, dataset: places}
mechanism: {name: psmm}
columns:
  x: {type: continuous, bounds: [0, 1]}
  y: {type: continuous, bounds: [0, 1]}
"""


def test_check_the_audit_and_the_report_have_it(dpsynth, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x:.4f},{y:.4f}" for x, y in rng.random((2000, 2))]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    (tmp_path / "spec.yaml").write_text(SPEC)
    told, own = dpsynth("check", "spec.yaml", "--runs", "0", "--json").json["prediction"]["bounds"]
    assert "any statistic that changes by no more than the row does" in told["meaning"]
    assert dpsynth("release", "spec.yaml", "-q").code == 0
    audit = json.loads((tmp_path / "out/rows.audit.public.json").read_text())
    line, by_counts = [line for line in audit["error_bounds"] if "w1" in line]
    assert line["w1"] == told["w1"] < 0.15
    assert by_counts["w1"] < 1.1 * line["w1"] > own["w1"] / 1.1
    assert "this release" in line["meaning"]
    assert dpsynth("verify", "out/rows.audit.public.json").code == 0
    assert dpsynth("report", "out/rows.audit.public.json", "-o", "page.html", "-q").code == 0
    assert "A bound, no measurement" in (tmp_path / "page.html").read_text()


def test_the_bound_evaluate_and_the_report_are_of_the_distance_that_was_asked_for(dpsynth, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x:.4f},{y:.4f}" for x, y in rng.random((500, 2))]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    spec = SPEC.replace("{name: psmm}", "{name: psmm, metric: l2, cells: 64, weights: {x: 2}}")
    (tmp_path / "spec.yaml").write_text(spec.replace("rows_hint: 2000", "rows_hint: 500"))
    words = "Euclidean distance, columns as long as their weights, the heaviest from 0 to 1"
    told = dpsynth("check", "spec.yaml", "--runs", "0", "--json").json["prediction"]["bounds"][0]
    assert (told["distance"], told["farthest"]) == (words, pytest.approx(2**0.5, abs=0.01))
    assert words in dpsynth("check", "spec.yaml", "--runs", "0").out
    assert dpsynth("release", "spec.yaml", "-q").code == 0
    assert dpsynth("verify", "out/rows.audit.public.json").code == 0
    audit = json.loads((tmp_path / "out/rows.audit.public.json").read_text())
    assert [line["distance"] for line in audit["error_bounds"] if "w1" in line] == [words, words]
    assert audit["mechanism"]["chosen"]["metric"] == "l2"
    judged = dpsynth("evaluate", "spec.yaml", "out/rows.csv", "--json", "-m", "w1_2d").json["metrics"]
    assert judged["w1_2d"]["metric"] == "l2"
    dpsynth("report", "out/rows.audit.public.json", "-o", "page.html", "-q")
    assert words in (tmp_path / "page.html").read_text()


def test_few_values_are_farther_apart_than_as_many_cells():
    """Nine values have eight steps between the bounds, their lattice nine cells."""
    nine = Domain(HOSTILE["ordinal"], "replace_one")
    lattice = lattice_for(nine, psmm.Params(cells=60), 1, 1)
    assert psmm._widths(nine, lattice, psmm.Params()) == ([0.0], pytest.approx(9 / 8))
    many = Domain(HOSTILE["plane"], "replace_one")
    assert psmm._widths(many, lattice_for(many, psmm.Params(cells=60), 1, 1), psmm.Params())[
        1
    ] == pytest.approx(1)


def test_lattices_of_classes_draw_their_noise_in_the_order_of_the_classes(monkeypatch):
    """A set has another order in another process, and the same file would have another bound."""
    sizes = (5, 9, 4, 8, 3, 7, 6)
    classes = [
        guarantee.Settled(Lattice((Axis(k), Axis(2)), k), [0.1, 0.1], 1.0, np.full(2 * k, 5), 0.0, 0.0)
        for k in (*sizes, *sizes)
    ]
    drawn_for = []
    monkeypatch.setattr(guarantee, "mean_off", lambda lattice, *rest: drawn_for.append(lattice.size) or 1.0)
    assert guarantee.by_answers(classes, Distance(), "discrete_laplace", 2.0, 0.0, 100) is not None
    assert drawn_for == [2 * k for k in sizes]
