"""The mechanism that the declared columns ask for, chosen by public facts alone.

`joint` measures whatever is worth its noise, and decides by its own noisy answers how much of a joint model
the budget allows. On most yardstick tables of 2 to 65 columns it was within a tenth of the best mechanism at
epsilon 0.1 to 10 (benchmarks/RESULTS.md has the exceptions). What is left to choose is where it has nothing
to join, or would need too many cells. Nothing is asked for the choice, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms import joint, marginals
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.questions import Ask, Model


@dataclass(frozen=True)
class Params:
    """None: whoever wants to set something names the mechanism."""


@dataclass(frozen=True)
class Choice:
    """A mechanism, and in a sentence why it was chosen."""

    mechanism: Mechanism
    why: str


def choice_of(omega: Domain) -> Choice:
    """What to take for these columns: a function of the declaration alone."""
    if len(omega.modelled) < 2:
        return Choice(marginals.MECHANISM, "there is one column besides the strata: nothing to join")
    refused = joint.fits(omega, joint.Params())
    if refused:
        return Choice(marginals.MECHANISM, f"joint does not take it: {refused[0]}")
    return Choice(joint.MECHANISM, "several columns: tables of them are measured where they are worth it")


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    choice = choice_of(omega)
    chosen = choice.mechanism
    model = chosen.run(ask, omega, chosen.params(), chosen.stages)
    facts = {"mechanism": chosen.name, "why": choice.why}
    return replace(model, facts=facts | model.facts)


def fits(omega: Domain, params: Params) -> list[str]:
    return [] if omega.modelled else ["auto needs a column besides the strata"]


MECHANISM = Mechanism(
    name="auto",
    summary="joint, or marginals where there is nothing to join or too much: by the declared columns alone",
    suits="any table, if you do not want to choose: what a draft names",
    citation="No paper: a rule that was measured (docs/mechanisms/auto.md)",
    run=run,
    params=Params,
    stages={},
    fits=fits,
)
