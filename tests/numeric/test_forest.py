"""Forests of attributes: the heaviest links, what they imply, rows that follow them."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth_cli.numeric.forest import cells_drawn, implied, rooted, spanning


def chain(rng, sizes, rows=1000.0):
    """Masses and link tables of a Markov chain over attributes of these sizes, in that order."""
    mass = rng.dirichlet(np.ones(sizes[0])) * rows
    masses, tables = [mass], {}
    for i in range(len(sizes) - 1):
        tables[i, i + 1] = masses[-1][:, None] * rng.dirichlet(np.ones(sizes[i + 1]), sizes[i])
        masses.append(tables[i, i + 1].sum(axis=0))
    return masses, tables


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


@pytest.mark.parametrize("links", [[(0, 1), (1, 2), (2, 3)], [(0, 1), (2, 3)], []])
def test_what_a_chain_implies_is_its_joint_distribution(links):
    masses, tables = chain(np.random.default_rng(1), [3, 4, 2, 5])
    tables = {pair: tables[pair] for pair in links}
    joint = masses[0] / 1000
    for i in range(3):
        given = (
            tables[i, i + 1] / tables[i, i + 1].sum(axis=1, keepdims=True) if (i, i + 1) in tables else None
        )
        step = given if given is not None else np.tile(masses[i + 1] / 1000, (len(masses[i]), 1))
        joint = joint[..., None] * step
    found = implied(rooted(links, 4), masses, tables)
    for i, j in combinations(range(4), 2):
        others = tuple(axis for axis in range(4) if axis not in (i, j))
        assert np.allclose(found[i, j], 1000 * joint.sum(axis=others), atol=1e-4)


def test_rows_follow_their_links_to_less_than_a_row_a_cell():
    masses, tables = chain(np.random.default_rng(2), [3, 4, 2, 5], rows=2000.0)
    cells = cells_drawn(rooted(list(tables), 4), masses, tables, 2000, np.random.default_rng(3))
    for (i, j), table in tables.items():
        made = np.zeros_like(table)
        np.add.at(made, (cells[:, i], cells[:, j]), 1)
        # The parent's own counts are less than one row off, and so is each cell of its row.
        assert np.abs(made - table).max() < 3
    far = implied(rooted(list(tables), 4), masses, tables)[0, 3]
    made = np.zeros_like(far)
    np.add.at(made, (cells[:, 0], cells[:, 3]), 1)
    assert np.abs(made - far).max() < 6 * np.sqrt(far.max())


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_and_masses_of_nothing(rows):
    masses = [np.zeros(3), np.zeros(2), np.zeros(1)]
    tables = {(0, 1): np.zeros((3, 2))}
    cells = cells_drawn(rooted([(0, 1)], 3), masses, tables, rows, np.random.default_rng(0))
    assert cells.shape == (rows, 3)
    assert all((cells[:, i] < size).all() for i, size in enumerate((3, 2, 1)))
    assert np.isfinite(implied(rooted([(0, 1)], 3), masses, tables)[1, 2]).all()
