"""Decks: every card as often as is due, and columns that are dealt side by side stay independent."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.numeric.decks import Deck, cards_for, dealt, deck


@settings(deadline=None)
@given(st.integers(1, 40), st.lists(st.integers(0, 90), max_size=12))
def test_cards_are_dealt_in_order_again_and_again(size, counts):
    cards = np.random.default_rng(size).integers(300, size=size)
    own = Deck(cards)
    got = np.concatenate([np.zeros(0, int), *(own.deal(count) for count in counts)])
    assert (got == np.resize(cards, sum(counts))).all()


def test_a_deck_for_all_rows_has_every_index_as_often_as_is_due():
    measure = np.array([3.0, 0.0, 1.0, 4.0])
    rng = np.random.default_rng(0)
    own = deck(measure, 800, rng, first=5)
    some = [own.deal(count) for count in (1, 300, 499)]
    assert np.bincount(np.concatenate(some)).tolist() == [0] * 5 + [300, 0, 100, 400]


def test_of_many_rows_a_deck_is_shorter_and_of_another_length_each_time():
    rng = np.random.default_rng(0)
    sizes = [cards_for(10**7, rng) for _ in range(100)]
    assert len(set(sizes)) > 90
    assert max(sizes) <= 2**18
    assert min(sizes) > 2**17
    assert [cards_for(rows, rng) for rows in (0, 1, 2**18)] == [1, 1, 2**18]


def test_two_columns_of_a_long_table_do_not_meet_in_the_same_order_again():
    rng = np.random.default_rng(0)
    one, other = (deck(np.ones(16), 100_000, rng, most=1000).deal(100_000) for _ in range(2))
    counts = np.bincount(one.astype(int) * 16 + other, minlength=256)
    # Chance gives a spread of sqrt(390) = 20; decks of one length would repeat 1000 rows: a spread of 200.
    assert np.abs(counts - 100_000 / 256).max() < 120


def test_decks_are_dealt_one_after_the_other():
    decks = [Deck(np.array([1, 2])), Deck(np.array([7]))]
    assert dealt(decks, np.array([3, 2])).tolist() == [1, 2, 1, 7, 7]
    assert dealt(decks, np.array([0, 1])).tolist() == [7]
