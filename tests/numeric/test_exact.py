"""Arithmetic that is the same everywhere: right to a last bit, with no rounding that an order decides."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.numeric import exact
from dpsynth_cli.numeric.loglinear import fitted
from dpsynth_cli.numeric.residual import Basis
from tests.conftest import ROOT
from tests.processors import on_others

RNG = np.random.default_rng(0)


def last_bits(found, right):
    """How far numbers are from exact ones, in units of their last bit."""
    return max(abs(Decimal(f) - r) / Decimal(math.ulp(f)) for f, r in zip(found.tolist(), right, strict=True))


def test_exp_and_log_are_right_to_about_a_last_bit():
    x = np.concatenate([RNG.uniform(-700, 700, 300), RNG.normal(size=300), RNG.normal(size=300) * 1e-8])
    assert last_bits(exact.exp(x), [Decimal(v).exp() for v in x.tolist()]) < 1.5
    y = np.concatenate([np.exp(x), 1 + x[600:]])
    assert last_bits(exact.log(y), [Decimal(v).ln() for v in y.tolist()]) < 2.5
    for odd in (-1e4, -708.5, -np.inf):
        assert exact.exp(np.array([0.0, odd, 1.0])).tolist() == [1.0, 0.0, math.e]
    assert np.isfinite(exact.exp(np.array([1e9]))).all()
    assert exact.log(np.array([0.0, 5e-324, 1e308])).tolist() == pytest.approx(
        [-np.inf, math.log(5e-324), math.log(1e308)]
    )


def test_exp_takes_any_shape_and_many_numbers():
    x = RNG.normal(size=(3, exact.CHUNK, 2))
    assert np.allclose(exact.exp(x), np.exp(x), rtol=1e-15, atol=0)
    assert np.allclose(exact.exp(x[:, ::3].T), np.exp(x[:, ::3].T), rtol=1e-15, atol=0)
    assert exact.exp(np.zeros((0, 2))).shape == (0, 2)


def test_tables_are_turned_without_any_rounding_but_the_one_that_is_said():
    """As fractions, after each number was rounded: nothing depends on an order."""
    matrices = [
        np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]),
        np.array([[1, 1], [1, -1.0]]),
    ]
    x = np.array([1.1, 1000.0, -1e-3, 0.7, -1.3, 1e-9])
    pairs = [(matrix, exact.bits_of(matrix)) for matrix in matrices]
    found = exact.turned(x, pairs)
    assert np.allclose(found, (matrices[0].T @ x.reshape(3, 2) @ matrices[1]).ravel(), atol=1e-10)
    rounded = [Fraction(round(Fraction(v) * 2**41), 2**41) for v in x.tolist()]  # 53 bits, but 10 and 2
    once = exact.turned(x, pairs[:1]).reshape(2, 3)
    for a, b in np.ndindex(2, 3):
        assert once[a, b] == sum(int(matrices[0][k, b]) * rounded[2 * k + a] for k in range(3))


def test_a_factor_undoes_a_matrix_as_well_as_it_says():
    rows = RNG.normal(size=(70, 90)) * np.geomspace(1e-3, 1e3, 70)[:, None]
    matrix = rows @ rows.T
    found, right = exact.solver(matrix.copy())(rows[:, 0]), np.linalg.solve(matrix, rows[:, 0])
    assert np.allclose(found, right, rtol=1e-2, atol=1e-2 * np.abs(right).max())
    singular = np.outer(rows[:, 0], rows[:, 0])
    assert np.allclose(singular @ exact.solver(singular.copy())(rows[:, 0]), rows[:, 0], rtol=1e-3)


def test_what_leads_to_rows_is_not_computed_by_what_differs_between_processors():
    differs = re.compile(
        r"np\.(exp2?|expm1|log(2|10|1p)?|logaddexp|cbrt|(float_)?power|tanh|sinh|cosh|sin|cos|arctan2?)\("
    )
    sources = [
        path for room in ("mechanisms", "numeric") for path in (ROOT / "dpsynth_cli" / room).rglob("*.py")
    ]
    assert len(sources) > 50
    found = {path.name for path in sources if differs.search(path.read_text())}
    assert found <= {"exact.py"}
    added_up = re.compile(r"\w[)\]]? @ |\.dot\(|matmul|tensordot")
    units = [path for path in sources if path.parent.name == "units"]
    assert len(units) > 10
    assert [path.name for path in units if added_up.search(path.read_text())] == []


def fits() -> str:
    """The bits of fits in all three ways of them."""
    found = []
    for sizes in ((2,) * 9, (3, 4, 2, 3), (9, 8, 8, 7, 3)):
        rng, basis = np.random.default_rng(1), Basis(sizes)
        index = np.concatenate([basis.residual(some) for some in ([0], [1], [0, 1], [1, 2], [2, 3])])
        means, penalty = rng.normal(0, 0.1, len(index)), rng.uniform(1e-4, 1e-2, len(index))
        found += [part.tobytes().hex() for part in fitted(basis, index, means, penalty)[:2]]
    x = rng.normal(size=10_000) * 9
    found += [str(exact.inner(x[at:1000], x[: 1000 - at])) for at in range(20)]
    found += [part.tobytes().hex() for part in (exact.exp(x), exact.log(x * x), exact.power(x * x, 0.3))]
    return "".join(found)


def test_a_fit_has_the_same_bits_on_other_processors():
    here = fits()
    script = "from tests.numeric.test_exact import fits; print(fits())"
    for processor, there in on_others(script):
        assert there.strip() == here, processor
