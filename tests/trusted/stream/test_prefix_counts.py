"""Counts of everything so far: exact sums, and no row pays more than the whole over all releases."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import BudgetError
from dpsynth_cli.mechanisms.online.online import partition
from dpsynth_cli.mechanisms.pmm.levels import deepest
from dpsynth_cli.questions import CellCounts, Cells, Misfit, Question, Total
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import TranscriptMismatch
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.stream.blocks import Blocks, close_release, open_release
from dpsynth_cli.trusted.stream.factorisation import TooManyReleases, factorisation, rows_of
from dpsynth_cli.trusted.stream.leaves import Gathered, Leaves
from dpsynth_cli.trusted.stream.prefix_counts import prefix_counts
from dpsynth_cli.trusted.stream.release_prices import release_bill, release_charge
from dpsynth_cli.trusted.stream.step import Stream

COLUMNS = (
    Column("x", "continuous", lower=0.0, upper=1.0),
    Column("kind", "nominal", categories=("a", "b", "c"), nullable=True),
)
OMEGA = Domain(COLUMNS)
DEPTH = deepest(COLUMNS)
FULL = partition(COLUMNS, DEPTH).cells(COLUMNS, DEPTH)
EXACT = Fraction(10**6)
BUDGETS = {
    "epsilon": lambda: Accountant.pure(EXACT),
    "rho": lambda: Accountant("rho", EXACT, EXACT, Fraction(1, 10**6)),
}


def room(level: int) -> np.ndarray:
    return partition(COLUMNS, level).volumes(COLUMNS)


def level(j: int, share: Fraction) -> Question:
    return Question("counts", CellCounts(partition(COLUMNS, j).cells(COLUMNS, j)), share)


def arrived(rows: int, seed: int) -> Leaves:
    rng = np.random.default_rng(seed)
    tally = Gathered(FULL, OMEGA)
    tally.add({column.name: rng.integers(column.codes, size=rows) for column in COLUMNS}, rows)
    return tally.leaves()


def opened(currency: str, before: Blocks, rows: Leaves, omega: Domain = OMEGA, events: int | None = None):
    """The blocks of the next release and its `ask`."""
    method = factorisation(currency)
    blocks = open_release(method, before, rows)
    budgets = [BUDGETS[currency]() for _ in rows_of(method, blocks.starts, blocks.release)]
    ask, asked = prefix_counts(method, blocks, FULL, room, omega, budgets, system_source(), events)
    return blocks, ask, asked


NOTHING = Blocks([], [], {})


@pytest.mark.parametrize("currency", BUDGETS)
def test_without_noise_every_level_of_every_release_is_exact(currency):
    """Also where a level comes or goes: those that were not measured come from those that were, and where no
    row can tell better a level that is new to a tree is right from then on."""
    before, everything, third = NOTHING, Leaves(), Fraction(1, 3)
    for release in range(1, 31):
        rows = arrived(200, release)
        everything = everything + rows
        blocks, ask, asked = opened(currency, before, rows)
        deep = 6 if release < 15 else 5
        answers = ask([level(0, third), level(3, third), level(deep, third)])
        for j, answer in zip((0, 3, deep), answers, strict=True):
            assert (answer.values == everything.level(DEPTH, j)).all()
            assert answer.noise == {"rho": "factorised_gaussian", "epsilon": "branched_laplace"}[currency]
        before = close_release(factorisation(currency), blocks, asked)
        assert set(before.known) == {0, 3, deep}


@pytest.mark.parametrize("currency", BUDGETS)
def test_a_release_never_asks_for_more_than_the_whole(currency):
    _, ask, _ = opened(currency, NOTHING, arrived(10, 0))
    ask([level(0, Fraction(1, 2)), level(2, Fraction(1, 2))])
    with pytest.raises(BudgetError):
        ask([level(4, Fraction(1, 10**9))])


def test_a_level_is_measured_once_in_a_release():
    _, ask, _ = opened("rho", NOTHING, arrived(10, 0))
    ask([level(2, Fraction(1, 4))])
    for questions in ([level(2, Fraction(1, 4))], [level(3, Fraction(1, 4))] * 2):
        with pytest.raises(ValueError, match="measures each level once"):
            ask(questions)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("currency", BUDGETS)
def test_the_noise_of_a_row_pays_for_a_whole_column_of_c(currency, neighbours):
    """A row of C by itself would cost far less: an event is in all later ones, too."""
    budget, share = BUDGETS[currency](), Fraction(1, 5)
    for release, length in ((1, 128), (128, 128), (129, 128**2)):
        charge = release_charge(level(2, share), Domain(COLUMNS, neighbours), budget, release)
        norm = factorisation(currency).norm(length) * (1 if neighbours == "add_remove" else 2)
        if currency == "rho":
            assert charge.price.parameter >= Fraction(norm) / (2 * share * budget.total)
        else:
            assert charge.price.parameter == norm / (share * budget.total)
        assert charge.price.cost == share * budget.total


@pytest.mark.parametrize("currency", BUDGETS)
def test_with_a_known_end_a_row_pays_for_a_column_of_so_many_releases_and_for_none_beyond(currency):
    budget, share = BUDGETS[currency](), Fraction(1, 5)
    for most in (10, 365):
        charges = [release_charge(level(2, share), OMEGA, budget, release, most) for release in (1, most)]
        assert charges[0].price == charges[1].price
        norm = factorisation(currency).norm(most)
        if currency == "rho":
            assert charges[0].price.parameter >= Fraction(norm) / (2 * share * budget.total)
        else:
            assert charges[0].price.parameter == norm / (share * budget.total)
        with pytest.raises(TooManyReleases):
            release_charge(level(2, share), OMEGA, budget, most + 1, most)
    unknown = release_charge(level(2, share), OMEGA, budget, 10)
    known = release_charge(level(2, share), OMEGA, budget, 10, 10)
    assert known.price.parameter < Fraction(3, 4) * unknown.price.parameter


@pytest.mark.parametrize("currency", BUDGETS)
def test_a_total_pays_for_a_unit_that_leaves_one_push_and_enters_another(currency):
    """Its rows in push 2, or in push 30: rows of C move by two columns, with signs. In a table a total moves
    by the difference of two numbers of rows, which is half of that."""
    omega, budget = Domain(COLUMNS, "replace_one", unit_rows=2), BUDGETS[currency]()
    total, cell = (Question("n", one, Fraction(1)) for one in (Total(), CellCounts(Cells(()))))
    asked, single = (release_charge(one, omega, budget, 1) for one in (total, cell))
    assert asked.question == total
    assert asked.price == single.price
    rows = [row for release in range(1, 40) for row in _rows_of_c(currency, release)]
    move = [2 * abs(int(row[1]) - int(row[29])) for row in rows]
    if currency == "rho":
        assert sum(Fraction(each) ** 2 for each in move) / (2 * asked.price.parameter) <= budget.total
    else:
        assert sum(move) / asked.price.parameter <= budget.total


def _rows_of_c(currency: str, release: int) -> list[np.ndarray]:
    """The rows that a release measures, each push of 40 a release."""
    starts = list(range(release))
    found = []
    for row in rows_of(factorisation(currency), starts, release):
        wide = np.zeros(40, np.int64)
        wide[:release] = row
        found.append(wide)
    return found


def test_the_number_of_rows_is_free_only_where_arrivals_are_public():
    omega = Domain(COLUMNS, "replace_one")
    free = Question("n", Total(), Fraction(0))
    _, ask, _ = opened("rho", NOTHING, arrived(10, 0), omega, events=10)
    assert ask([free])[0].values.tolist() == [10]
    _, ask, _ = opened("rho", NOTHING, arrived(10, 0), omega)
    with pytest.raises(ValueError, match="not free"):
        ask([free])


def test_what_has_no_share_reads_no_row():
    """Given the answers that were paid for, the rows do not matter."""
    before, ask, _ = opened("rho", NOTHING, arrived(4000, 0))
    ask([level(1, Fraction(1, 2)), level(4, Fraction(1, 2))])
    told = []
    for rows in (arrived(300, 1), Leaves()):
        blocks, ask, _ = opened("rho", before, rows)
        ask([level(1, Fraction(1))])
        blocks.known[1].blocks[-1] = 150
        told.append(ask([level(4, Fraction(0))])[0].values)
    assert (told[0] == told[1]).all()
    assert told[0].sum() == 4300


def test_only_levels_of_the_streams_own_partition_are_counted():
    _, ask, asked = opened("rho", NOTHING, arrived(10, 0))
    for cells in (Cells(FULL.axes[:1]), partition(COLUMNS[1:], 2).cells(COLUMNS[1:], 2)):
        with pytest.raises(TranscriptMismatch):
            ask([Question("c", CellCounts(cells), Fraction(1, 9))])
    with pytest.raises(
        TranscriptMismatch, match="a stream counts rows in the levels of its own partition only"
    ):
        ask([Question("c", Misfit((Cells(()),), (((10,),),)), Fraction(1, 9))])
    assert not asked


def test_raw_counts_are_gone_at_the_end_of_a_phase():
    before = NOTHING
    for release in range(1, 131):
        blocks, ask, asked = opened("rho", before, arrived(5, release))
        ask([level(1, Fraction(1))])
        before = close_release(factorisation("rho"), blocks, asked)
        assert sum(part.rows for part in before.raw) == 5 * (release if release < 128 else release - 128)
    assert before.known[1].total.sum() == 650


def test_a_bill_of_a_release_is_refused_above_the_whole():
    bill = release_bill(OMEGA, BUDGETS["rho"](), 7)
    bill.charge([level(0, Fraction(1, 2)), level(2, Fraction(1, 2)), level(4, Fraction(0))])
    with pytest.raises(BudgetError):
        bill.charge([level(6, Fraction(1, 10**6))])


def test_public_arrivals_need_replace_one():
    """Under add_remove a row that is not there changes how many arrive: its number cannot be public."""
    Stream(Domain(COLUMNS, "replace_one"), FULL, room, True, BUDGETS["epsilon"])
    with pytest.raises(ValueError, match="public under replace_one only"):
        Stream(OMEGA, FULL, room, True, BUDGETS["epsilon"])
