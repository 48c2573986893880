"""Tables of mixed columns, counted on: exact where there is no noise, paid for over a row's whole life."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import BudgetError
from dpsynth_cli.questions import Bins, CellCounts, Cells, Gram, Misfit, Moments, Question, Total
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import TranscriptMismatch
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.stream.coded_rows import CodedRows, Summed, none_yet
from dpsynth_cli.trusted.stream.epoch import Epoch
from dpsynth_cli.trusted.stream.factorisation import factorisation
from dpsynth_cli.trusted.stream.table_counters import Counters
from dpsynth_cli.trusted.stream.table_prices import length_of, table_charge, table_sd, tables_bill

OMEGA = Domain(
    (Column("k", "nominal", categories=("a", "b", "c")), Column("b", "nominal", categories=("no", "yes")))
)
K, B = Bins("k", (0, 1, 2, 3)), Bins("b", (0, 1, 2))
FIRST = [
    Question("total", Total(), Fraction(1, 10)),
    Question("columns", CellCounts(Cells((K,))), Fraction(1, 5)),
]
PAIR = Question("pairs", CellCounts(Cells((K, B))), Fraction(2, 5))
SIGNS = Question("pairs", Gram((B, B), scores=((1, -1), (1, -1)), bits=1), Fraction(1, 5))
LOOK = Question("misfit", Misfit((Cells((K, B)),), (((5,) * 6,),)), Fraction(1, 10))
EXACT = {
    "epsilon": lambda: Accountant.pure(Fraction(10**7)),
    "rho": lambda: Accountant.gaussian(Fraction(10**5), Fraction(1, 10**9)),
}


def coded(rows: int, seed: int = 0) -> CodedRows:
    rng = np.random.default_rng(seed)
    return CodedRows({"k": rng.integers(0, 3, rows), "b": rng.integers(0, 2, rows)}, np.ones(rows, np.int64))


def begun() -> Epoch:
    return Epoch(0, none_yet(OMEGA), Counters(list(FIRST)))


def never(ask, answers) -> float:
    return 0.0


def both_tables(ask, answers) -> float:
    ask([PAIR, LOOK, SIGNS])
    return float(answers[0].values[0])


def arrive(epoch: Epoch, rows: CodedRows) -> None:
    """As a push reads it."""
    epoch.arrive(Summed(rows.rows, rows.sums(epoch.questions, OMEGA)) if epoch.questions else rows)


# --- counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("currency", EXACT)
def test_without_noise_every_answer_is_the_count_of_everything_so_far(currency):
    """Also of tables that were begun at the fourth release, and of rows that came and went."""
    epoch, all_rows = begun(), none_yet(OMEGA)
    for release in range(1, 61):
        rows = coded(20, release)
        rows = -rows if release in (3, 30) else rows
        all_rows = all_rows + rows
        arrive(epoch, rows)
        epoch = Epoch.of_parts(*epoch.as_parts())
        choice, now = epoch.measure(
            OMEGA, EXACT[currency], system_source(), both_tables if release == 4 else never
        )
        asked = FIRST if release < 4 else [*FIRST, PAIR, SIGNS]
        exact = all_rows.sums(asked, OMEGA)
        for own, (_, answer) in zip(exact, now, strict=True):
            assert np.abs(answer.values - own).max() <= 5 * max(answer.sd, 0.3)
        assert len(choice) == (5 if release == 4 else 0)
        assert max(answer.sd for _, answer in now) < 2
    assert epoch.looked == Fraction(1, 10)


def test_a_misfit_is_of_rows_that_came_less_rows_that_went():
    rows = coded(40) + -coded(10, 1)
    counts = rows.sums([PAIR], OMEGA)[0]
    assert rows.sums([LOOK], OMEGA)[0].tolist() == [int(np.abs(counts - 5).sum())]


def test_after_the_choice_no_row_is_kept_and_the_state_does_not_grow_with_rows():
    sizes = {}
    for rows in (50, 5000):
        epoch = begun()
        arrive(epoch, coded(rows))
        assert len(epoch.rows.signs) == rows
        epoch.measure(OMEGA, EXACT["rho"], system_source(), both_tables)
        assert len(epoch.rows.signs) == 0
        arrive(epoch, coded(rows, 1))
        sizes[rows] = sum(map(len, epoch.as_parts()[1]))
    assert sizes[50] == sizes[5000]


# --- prices ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("currency", EXACT)
def test_a_row_pays_nearly_its_share_over_an_epoch_and_never_more(currency):
    """Whenever it arrives: the entries of its column of C, and the noise of each row."""
    budget, length, method = EXACT[currency](), length_of(0), factorisation(currency)
    charge = table_charge(PAIR, OMEGA, budget, length)
    paid = {arrival: Fraction(0) for arrival in (1, 2, 12, 60, 128)}
    starts: list[int] = []
    for step in range(1, length + 1):
        starts = [s for s in starts if s == 0 or method.keeps(s, step, length)] + [step - 1]
        for row in method.rows(starts, step, length):
            for arrival in paid:
                if arrival <= step:
                    entry = row[sum(start < arrival for start in starts) - 1]
                    cost = entry if currency == "epsilon" else Fraction(entry**2, 2)
                    paid[arrival] += cost / charge.price.parameter
    assert all(own <= charge.price.cost <= PAIR.share * budget.total for own in paid.values())
    assert paid[1] > 0.9 * PAIR.share * budget.total


def test_the_noise_that_is_drawn_is_the_noise_that_is_priced():
    """Of 400 counters at once, at the choice and ten releases later; 8 standard errors."""
    omega = Domain((Column("k", "nominal", categories=tuple(map(str, range(400)))),))
    wide = Question("links", CellCounts(Cells((Bins("k", tuple(range(401))),))), Fraction(1, 2))
    total = [Question("total", Total(), Fraction(1, 10))]

    def budget() -> Accountant:
        return Accountant.pure(Fraction(1))

    def choose(ask, answers) -> float:
        ask([wide])
        return 1.0

    epoch = Epoch(0, none_yet(omega), Counters(total))
    for _ in range(11):
        _, now = epoch.measure(omega, budget, system_source(), choose)
        answer = now[1][1]
        assert answer.sd >= table_sd(tables_bill(omega, budget(), 128), wide)
        assert abs(float((answer.values / answer.sd).var()) - 1) < 8 * np.sqrt(5 / 400)
    assert answer.sd == pytest.approx(np.sqrt(11) * 4 * np.sqrt(2), rel=0.01)  # two levels, half of epsilon


def test_more_than_the_whole_is_refused():
    def greedy(ask, answers) -> float:
        ask([PAIR])
        ask([Question("pairs", CellCounts(Cells((B,))), Fraction(2, 5))])
        return 1.0

    epoch = begun()
    with pytest.raises(BudgetError, match="needs 2/5 of the release's rho, but 3/10 of it is left"):
        epoch.measure(OMEGA, EXACT["rho"], system_source(), greedy)
    epoch = begun()
    epoch.looked = Fraction(8, 10)
    with pytest.raises(ValueError, match="more than the whole"):
        epoch.measure(OMEGA, EXACT["rho"], system_source(), never)


def test_counters_end_with_their_epoch():
    epoch = begun()
    for _ in range(length_of(0)):
        assert not epoch.is_full
        epoch.measure(OMEGA, EXACT["rho"], system_source(), never)
    assert epoch.is_full
    with pytest.raises(ValueError, match="fewer steps"):
        epoch.measure(OMEGA, EXACT["rho"], system_source(), never)


def test_only_tables_and_signs_are_counted_and_only_under_add_remove():
    budget = EXACT["rho"]()
    with pytest.raises(TranscriptMismatch):
        table_charge(Question("x", Moments(("b",), 1, 2), Fraction(1, 2)), OMEGA, budget, 128)
    replaced = Domain(OMEGA.columns, "replace_one")
    with pytest.raises(ValueError, match="add_remove"):
        table_charge(PAIR, replaced, budget, 128)
