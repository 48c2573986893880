"""The reference `ask` and the trusted core count the same, and make noise of the same size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Bins, CellCounts, Cells, Halves, Misfit, Question, Total
from dpsynth_cli.trusted.sums.tally import Tally
from tests.asking import asking
from tests.mechanisms.plain_ask import PlainAsk

HALF = Fraction(1, 2)


@st.composite
def asked(draw):
    columns = tuple(
        Column(f"c{i}", "integer", lower=0, upper=draw(st.integers(0, 12)), nullable=draw(st.booleans()))
        for i in range(draw(st.integers(1, 3)))
    )
    label = Column("label", "nominal", categories=("a", "b"), nullable=draw(st.booleans()))
    omega = Domain((*columns, label))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = {column.name: rng.integers(column.codes, size=25) for column in omega}

    def cells() -> Cells:
        if draw(st.booleans()):
            order = tuple(rng.permutation(np.repeat(range(len(columns)), 2)).tolist())
            return Cells(tuple(Halves(column.name, 2) for column in columns), order)
        return table(columns)

    def table(chosen) -> Cells:
        axes = []
        for column in chosen:
            inner = sorted(rng.integers(0, column.codes + 1, 3).tolist())
            axes.append(Bins(column.name, (0, *inner, column.codes)))
        return Cells(tuple(axes))

    def misfit() -> Misfit:
        tables = tuple(table(columns[i:]) for i in range(len(columns) + 1))
        return Misfit(
            tables,
            tuple(
                tuple(tuple(rng.integers(-1, 9, 4 ** len(part.axes)).tolist()) for part in tables)
                for _ in range(label.codes if by else 1)
            ),
        )

    by = draw(st.sampled_from([None, "label"]))
    shape = tuple(cells() for _ in range(label.codes)) if by and draw(st.booleans()) else cells()
    statistic = draw(st.sampled_from([Total(), CellCounts(shape), misfit()]))
    return omega, codes, Question("counts", statistic, HALF, by)


@given(asked())
@settings(max_examples=150, deadline=None)
def test_counts_are_those_of_the_core(case):
    omega, codes, question = case
    tally = Tally([question], omega)
    tally.add(codes, 25)
    (answer,) = PlainAsk(omega, codes, exact=True)([question])
    assert answer.values.tolist() == tally.sums()[0].tolist()


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("by", [None, "label"])
def test_noise_is_as_large_as_that_of_the_core(neighbours, by):
    columns = (Column("x", "integer", lower=0, upper=63), Column("label", "nominal", categories=("a", "b")))
    omega = Domain(columns, neighbours)
    codes = {"x": np.zeros(9, int), "label": np.zeros(9, int)}
    core, *_ = asking(codes, omega, 0.5)
    plain = PlainAsk(omega, codes, 0.5)
    gaussian, accountant, *_ = asking(codes, omega, 0.5, 1e-6)
    plain_gaussian = PlainAsk(omega, codes, rho=float(accountant.total))
    tables = (Cells((Halves("x", 2),)), *(Cells((Halves("x", 6),)),) * 40)
    far = Misfit(tables, (((0,) * 4, *((0,) * 64,) * 40),) * (2 if by else 1))
    for statistic in (Total(), far, CellCounts(Cells((Halves("x", 6),)))):
        question = Question("counts", statistic, HALF, by)
        assert plain.sd(question) == pytest.approx(core.sd(question))
        assert plain_gaussian.sd(question) == pytest.approx(gaussian.sd(question), rel=1e-4)
        if statistic == Total():
            continue
        noise = np.concatenate(
            [
                PlainAsk(omega, codes, 0.5, seed=s)([question])[0].values
                - PlainAsk(omega, codes, exact=True)([question])[0].values
                for s in range(60)
            ]
        )
        assert np.std(noise) == pytest.approx(core.sd(question), rel=0.1)
