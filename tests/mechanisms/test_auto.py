"""auto chooses by the declaration alone, says what and why, and is then the mechanism that it chose."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import joint, marginals
from dpsynth_cli.mechanisms.auto import MECHANISM, Params, choice_of, fits
from tests.asking import asking, drawn


def nominal(name: str, size: int = 3) -> Column:
    return Column(name, "nominal", categories=tuple(f"{name}{i}" for i in range(size)))


LINE = Column("x", "continuous", lower=0.0, upper=1.0)


@pytest.mark.parametrize(
    ("omega", "chosen", "why"),
    [
        (Domain((LINE,)), "marginals", "there is one column besides the strata: nothing to join"),
        (
            Domain((LINE, nominal("s")), strata="s"),
            "marginals",
            "there is one column besides the strata: nothing to join",
        ),
        (
            Domain((LINE, nominal("s"))),
            "joint",
            "several columns: tables of them are measured where they are worth it",
        ),
        (
            Domain((nominal("a"), nominal("b", 2**14 + 1))),
            "marginals",
            "joint does not take it: joint takes at most 16,384 categories of a column",
        ),
    ],
)
def test_what_is_chosen_follows_from_the_declaration(omega, chosen, why):
    choice = choice_of(omega)
    assert choice.mechanism.name == chosen
    assert choice.why.startswith(why)
    assert choice.mechanism.fits(omega, choice.mechanism.params()) == []
    assert fits(omega, Params()) == []


@pytest.mark.parametrize("own", [marginals.MECHANISM, joint.MECHANISM], ids=lambda one: one.name)
def test_it_asks_and_spends_what_the_chosen_one_would(own):
    columns = (nominal("a"), LINE)[: 1 if own.name == "marginals" else 2]
    omega = Domain(columns, "replace_one")
    rng = np.random.default_rng(1)
    codes = {column.name: rng.integers(column.codes, size=400) for column in columns}
    ask, accountant, _, recorded = asking(codes, omega, 1.0, None)
    model = MECHANISM.run(ask, omega, Params(), MECHANISM.stages)
    assert accountant.spent == accountant.total
    assert model.facts["mechanism"] == own.name
    assert model.facts["why"] == choice_of(omega).why
    alone, _, _, by_itself = asking(codes, omega, 1.0, None)
    own.run(alone, omega, own.params(), own.stages)
    first, same = recorded[0][0], by_itself[0][0]
    assert first == same
    assert len(drawn(model, 50, 0)["a"]) == 50


def test_nothing_but_the_strata_is_refused():
    assert fits(Domain((nominal("s"),), strata="s"), Params()) == ["auto needs a column besides the strata"]
