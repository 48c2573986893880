"""The `privacy` section of the spec: what the release may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.search.find import SHARE
from dpsynth_cli.spec.keys import Key, Section
from dpsynth_cli.spec.kinds import choice, positive, text
from dpsynth_cli.spec.reader import Reader, listed
from dpsynth_cli.spec.unit import UNIT, ProtectedUnit
from dpsynth_cli.spec.yaml_nodes import dotted

NEIGHBOURS = ("add_remove", "replace_one")
LONGEST_NAME = 100

MOST_SEARCH = Fraction(1, 2)
APART, MOST_APART = Fraction(1, 2), Fraction(1, 10)  # of a delta, for labels that nobody has listed
SEARCH = Key(
    "search",
    positive("a number above 0 and at most 0.5, such as 0.1", below=1),
    "the part of the budget that finds `bounds: private` and `categories: private`, all of them together; "
    "default 0.1. What finding them does not take is the mechanism's",
)
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
        "it, (epsilon, delta) with Gaussian noise, accounted by Gaussian differential privacy. Half of it is "
        "for labels that nobody has listed, where these are looked for (`categories: private` without "
        "`candidates`)",
    ),
    Key(
        "neighbours",
        choice(NEIGHBOURS),
        "`add_remove`: one row is there or not, and the number of rows is private. `replace_one`: one row "
        "has another value, and the number of rows is public. With a `unit`, all its rows instead of one, "
        "and the number of rows is private",
        default=NEIGHBOURS[0],
    ),
    UNIT,
    SEARCH,
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
    search: Fraction | None = None
    unit: ProtectedUnit | None = None
    apart: Fraction = Fraction(0)  # of the delta, for labels that nobody has listed

    @property
    def share_of_search(self) -> Fraction:
        """The part of the budget for finding bounds and categories."""
        return SHARE if self.search is None else self.search

    @property
    def budget(self) -> Fraction:
        """The epsilon of a release that has one."""
        if self.epsilon is None:
            raise UsageError("a release by groups has no privacy budget.", next_step="")
        return self.epsilon


def read_privacy(document: Reader, name: str, private: bool, columns: Sequence[Column] = ()) -> Privacy:
    """The section; the data set is called as the release is, unless it says otherwise. Of some of the columns
    there may be something to find."""
    section = document.section(replace(PRIVACY, required=private))
    if private:
        values = section.values(PRIVACY.keys)
    else:
        section.unused(*BUDGET)
        left_out = {key.name: None if key.required else key.default for key in BUDGET}
        values = left_out | section.values([DATASET])
    search = values.get("search")
    if search is not None and search > MOST_SEARCH:
        section.note(
            "search", "is more than half of the budget; the rest would be too little to release with"
        )
    elif search is not None and not any(column.private for column in columns):
        section.note("search", "is stated, but no column is private: nothing is to be found; leave it out")
    delta, open_ = values.get("delta"), [column.name for column in columns if column.open]
    wrong = any(one.path == dotted(PRIVACY.name, "delta") for one in document.mistakes)
    if private and open_ and delta is None and not wrong:
        section.note(
            "delta",
            f"is not stated, but labels of {listed(open_)} are looked for among cells (categories: private "
            "without candidates), which takes one; state a delta such as 1e-9, or candidates",
        )
    section.finish()
    apart = min(delta * APART, MOST_APART) if open_ and delta is not None else Fraction(0)
    return Privacy(**values | {"dataset": values["dataset"] or name}, apart=apart)
