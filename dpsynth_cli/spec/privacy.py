"""The `privacy` section of the spec: what the release may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpsynth_cli.errors import UsageError
from dpsynth_cli.spec.keys import Key, Section
from dpsynth_cli.spec.kinds import choice, positive, text
from dpsynth_cli.spec.reader import Reader

NEIGHBOURS = ("add_remove", "replace_one")
LONGEST_NAME = 100

BUDGET = (  # a release by groups has none of these
    Key(
        "epsilon",
        positive("a positive number such as 1.0"),
        "a positive exact decimal: 0.1 is one tenth",
        required=True,
        unless="`guarantee: groups`, which is not differentially private",
        default=Fraction(1),
    ),
    Key(
        "delta",
        positive("a number between 0 and 1 such as 1e-9", below=1),
        "between 0 and 1, far below one over the number of rows; above 1e-4 the audit warns. Without it the "
        "guarantee is pure epsilon with discrete Laplace noise (or noise from a cube, if that is less); with "
        "it, (epsilon, delta) with Gaussian noise, accounted by Gaussian differential privacy",
    ),
    Key(
        "neighbours",
        choice(NEIGHBOURS),
        "`add_remove`: one row is there or not, and the number of rows is private. `replace_one`: one row "
        "has another value, and the number of rows is public",
        default=NEIGHBOURS[0],
    ),
)
DATASET = Key(
    "dataset",
    text(f"text on one line, at most {LONGEST_NAME} characters, such as trips-2026", LONGEST_NAME),
    "whose budget in the ledger is charged; default: `name`. All specs about the same people must name the "
    "same data set",
)
PRIVACY = Section(
    "privacy",
    (*BUDGET, DATASET),
    "what the release may cost",
    such_as="epsilon: 1.0",
    required=True,
    unless="`guarantee: groups`",
)


@dataclass(frozen=True)
class Privacy:
    """What the release may cost, under which relation, and from whose budget.

    No epsilon: the release is by groups, and not differentially private.
    """

    epsilon: Fraction | None
    delta: Fraction | None
    neighbours: str
    dataset: str

    @property
    def budget(self) -> Fraction:
        """The epsilon of a release that has one."""
        if self.epsilon is None:
            raise UsageError("a release by groups has no privacy budget.", next_step="")
        return self.epsilon


def read_privacy(document: Reader, name: str, private: bool) -> Privacy:
    """The section; the data set is called as the release is, unless it says otherwise."""
    section = document.section(replace(PRIVACY, required=private))
    if private:
        values = section.values(PRIVACY.keys)
    else:
        section.unused(*BUDGET)
        left_out = {key.name: None if key.required else key.default for key in BUDGET}
        values = left_out | section.values([DATASET])
    section.finish()
    return Privacy(**values | {"dataset": values["dataset"] or name})
