"""Labels that nobody has listed: those whose noisy count reaches the threshold, and no others.

Claim. Let two tables be neighbours, and let rho and delta be what a question was charged. For each of the
two there is an event of probability at most delta, independent of all other noise of the release, outside of
which its answer is the same function, for both, of Gaussian noise, as of rho, on the counts of those labels
that both tables have.

Proof. A row (a unit) has one label, if any. So the counts of at most two labels differ, under add_remove of
one, by 1 each: L2 squared 1, or 2 under replace_one. A label that one table has and the other has not is one
of these, so that its count is 1, and each table has at most one such. The event is that the noisy count of
this label reaches the threshold: its probability is at most delta (`threshold.py`), and its noise is used
for nothing else. Outside of it the answer shows labels that both tables have, each by its own noisy count.

What follows for a release is in docs/privacy.md. A label that no row has is in no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from dpsynth_cli.labels import KIND, Labels, packed
from dpsynth_cli.questions import Answer, Ints
from dpsynth_cli.trusted.core.prices import Charge

# Which of the questions it is about, labels of its column, and how many rows (or units) each has. Every
# label that a row has comes once.
LabelCounts = tuple[int, Labels, Ints]


def labels_above(
    charges: Sequence[Charge], counted: Iterable[LabelCounts], noise: Callable[[Fraction, int], Ints]
) -> list[Answer]:
    """An answer for each charge: labels in the order of their bytes, with noisy counts."""
    kept: list[list[tuple[Labels, Ints]]] = [[(np.zeros(0, KIND), np.zeros(0, np.int64))] for _ in charges]
    for place, labels, counts in counted:
        price = charges[place].price
        assert price.threshold is not None
        noisy = counts + noise(price.parameter, len(counts))
        there = noisy >= price.threshold
        kept[place].append((labels[there], noisy[there]))
    answers = []
    for charge, parts in zip(charges, kept, strict=True):
        labels, counts = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        order = np.argsort(labels)
        values = packed(labels[order], counts[order])
        answers.append(Answer(values, (len(values),), charge.price.noise, charge.price.sd))
    return answers
