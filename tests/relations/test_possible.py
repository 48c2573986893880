"""Rules that leave no row are found before anything is read; a row that is found keeps them all."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.relations import possible
from dpsynth_cli.relations.contradictions import keeper_of
from dpsynth_cli.relations.language import parse
from dpsynth_cli.relations.linear import solved
from dpsynth_cli.relations.possible import possible_row
from dpsynth_cli.relations.relations import Computed, Relations, Rule

A = Column("a", "integer", 0, 4, nullable=True)
B = Column("b", "integer", 1, 4)
C = Column("c", "nominal", categories=("x", "y", "z"), nullable=True)
D = Column("d", "boolean", categories=("false", "true"))
SMALL = Domain((A, B, C, D))
BIG = Domain(tuple(Column(f"n{i}", "integer", 0, 1_000_000) for i in range(8)))


def rules(*texts, computed=()):
    made = tuple(Computed(Column(name, "integer", 0, 10), parse(text)) for name, text in computed)
    return Relations(made, tuple(Rule(text, parse(text)) for text in texts))


def every_row(omega):
    grid = np.array(list(itertools.product(*(range(column.codes) for column in omega))))
    return {column.name: grid[:, i] for i, column in enumerate(omega)}


ATOMS = [
    "a < b", "a == b + 1", "2 * a == 2 * b + 1", "a is missing", "c == 'x'", "c in ['y', 'z']", "d",
    "a + b >= 7", "a > 2 and d", "not (a > 2 or d)",
    "c is not missing", "a * b == 6", "a // 2 == 1", "b != 3", "if d then a is missing", "c != 'x' or a > 1",
    "if c == 'x' then d else not d", "a in [0, 4]", "e > 5", "e == 2 * b", "not d", "c is missing",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5, unique=True))
def test_a_row_is_found_where_there_is_one_and_only_there(texts):
    relations = rules(*texts, computed=[("e", "or_else(a, 0) + b")])
    some = ~relations.broken(every_row(SMALL), SMALL, relations.kept)
    found = possible_row(relations, SMALL)
    assert (found.row is not None) == bool(some.any())
    assert found.surely
    for columns, own in relations.groups():
        row, certain = solved(relations, SMALL, columns, own, {})
        kept = ~relations.broken(every_row(SMALL), SMALL, own)
        assert row is None or kept.any()  # what it finds is checked on the rules
        assert row is not None or not certain or not kept.any()


LINEAR = [text for text in ATOMS if not any(sign in text for sign in ("a * b", "//", "e "))]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(LINEAR), min_size=1, max_size=5, unique=True))
def test_the_integer_program_says_the_same_as_every_row_together(texts):
    relations = rules(*texts)
    for columns, own in relations.groups():
        kept = ~relations.broken(every_row(SMALL), SMALL, own)
        row, certain = solved(relations, SMALL, columns, own, {})
        assert certain
        assert (row is not None) == bool(kept.any())


@pytest.mark.parametrize(
    "texts", [("a > 2 and d", "a is missing", "not d"), ("a > 2 or d", "a is missing", "not d")]
)
def test_the_integer_program_knows_what_is_decided_without_what_is_missing(texts):
    relations = rules(*texts)
    columns, own = relations.groups()[0]
    row, certain = solved(relations, SMALL, columns, own, {})
    assert certain
    assert (row is None) == ("and" in texts[0])


def test_where_a_search_would_take_too_long_the_integer_program_decides():
    odd = rules("2 * n0 == 2 * n1 + 1", "n0 - n1 < 900000", "n1 - n0 < 900000")
    columns, own = odd.groups()[0]
    assert possible._search(odd, BIG, columns, own, {}) == possible.Found(None, surely=False)
    assert possible_row(odd, BIG) == possible.Found(None)
    far = rules("n0 + n1 + n2 + n3 + n4 + n5 + n6 == 6999999", "n7 == n0 + 1 - n1", "n7 != 1")
    found = possible_row(far, BIG)
    assert found.row is not None
    block = {name: np.array([code]) for name, code in found.row.items()}
    assert not far.broken(block, BIG, far.kept).any()


def test_what_neither_decides_is_said_and_not_guessed():
    hard = rules("n0 * n1 == 999983 * 999979 + 2 * n2 * n3 - 2 * n2 * n3", "n0 > 1", "n1 > 1", "n0 % 7 == 3")
    found = possible_row(hard, BIG)
    if found.row is None:
        assert not found.surely
        _, problems = keeper_of(hard, BIG)
        assert problems == [
            "rules: no row was found that keeps all of them, and it could not be shown that there is none; "
            "state fewer or simpler ones, or compute a column by `derive`"
        ]


@pytest.mark.parametrize(
    ("texts", "strata", "said"),
    [
        (["a > 2", "b > 3", "a is not missing", "a + b < 6"], None,
         "the rules `a > 2`, `b > 3`, `a is not missing`, `a + b < 6` leave no row: drop one, or widen what "
         "is declared"),
        (["b < 1", "d"], None, "the rule `b < 1` leaves no row: drop one, or widen what is declared"),
        (["if c == 'x' then a > 3", "a is missing or a < 3", "a is not missing"], "c",
         "the rules `if c == 'x' then a > 3`, `a is missing or a < 3`, `a is not missing` leave no row with "
         "x c: drop one, or widen what is declared"),
        (["c is not missing"], "c",
         "the rule `c is not missing` leaves no row with a missing c: drop one, or widen what is declared"),
    ],
)  # fmt: skip
def test_the_rules_that_contradict_each_other_are_named(texts, strata, said):
    _, problems = keeper_of(rules(*texts), Domain(SMALL.columns, strata=strata))
    assert problems == [said]


def test_each_class_has_a_row_of_its_own():
    omega = Domain(SMALL.columns, strata="c")
    relations = rules(
        "if c == 'x' then a > 3", "if c == 'y' then a is missing", "if c is missing then b == 2"
    )
    keeper, problems = keeper_of(relations, omega)
    assert problems == []
    assert sorted(keeper.possible) == [0, 1, 2, 3]
    for k, row in keeper.possible.items():
        assert row["c"] == k
        block = {name: np.array([code]) for name, code in row.items()}
        assert not relations.broken(block, omega, relations.kept).any()


def test_numbers_on_another_scale_are_no_linear_program():
    skewed = Column("skewed", "continuous", 1.0, 1e6, scale="log")
    relations = rules("skewed + n0 == 17.5")
    omega = Domain((skewed, *BIG.columns))
    columns, own = relations.groups()[0]
    assert solved(relations, omega, columns, own, {}) == (None, False)
    above = rules("skewed > 1000", "n0 < skewed")
    found = possible_row(above, omega)
    assert found.row is not None
