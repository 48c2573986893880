"""Forests of attributes: the heaviest links, and every attribute after its parent."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth_cli.numeric.forest import rooted, spanning


def test_the_spanning_tree_is_the_heaviest_of_all():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = {pair: float(rng.random()) for pair in combinations(range(5), 2)}
        links = spanning(scores, 5)
        best = max(
            sum(scores[pair] for pair in some)
            for some in combinations(scores, 4)
            if len({node for node, _ in rooted(some, 5)}) == 5
            and sum(parent is None for _, parent in rooted(some, 5)) == 1
        )
        assert len(links) == 4
        assert sum(scores[pair] for pair in links) == pytest.approx(best)


def test_pairs_without_a_score_stay_unlinked():
    assert spanning({(0, 1): -1.0, (0, 2): 0.0, (1, 2): 0.5}, 3) == [(1, 2)]


def test_every_attribute_comes_once_and_after_its_parent():
    order = rooted([(3, 4), (0, 3), (1, 2)], 6)
    assert sorted(node for node, _ in order) == list(range(6))
    seen = set()
    for node, parent in order:
        assert parent is None or parent in seen
        seen.add(node)
    assert sum(parent is None for _, parent in order) == 3
