"""What is known of the error of a release without the data: a bound on the Wasserstein distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PARTS = {"linf": "largest coordinate", "l1": "sum of coordinates", "l2": "Euclidean distance"}


@dataclass(frozen=True)
class Distance:
    """Between rows: the metric, whether columns have weights, and how far apart rows can be."""

    metric: str = "linf"
    weighted: bool = False
    farthest: float = 1.0

    @property
    def words(self) -> str:
        """
        >>> Distance("l2").words
        'Euclidean distance, each column from 0 to 1'
        """
        sides = "columns as long as their weights, the heaviest" if self.weighted else "each column"
        return f"{PARTS[self.metric]}, {sides} from 0 to 1"


@dataclass(frozen=True)
class Bound:
    """What the W1 distance between the real and the synthetic table is on average at most, whatever the real
    one is; and of which algorithm that is said, after "of". How far rows are apart is said by `distance`.

    One `of_answers` follows from the noisy answers of a release: it varies with them, and W1 is on average at
    most its own average. `terms` names what it is the sum of.
    """

    w1: float
    of: str
    of_answers: bool = False
    terms: Mapping[str, float] = field(default_factory=dict)
    distance: Distance = Distance()

    @classmethod
    def of_terms(cls, of: str, distance: Distance | None = None, **terms: float) -> Bound:
        """From answers: the sum of its terms, rounded, so that every machine says the same."""
        found = {name: rounded(term) for name, term in terms.items()}
        return cls(rounded(sum(terms.values())), of, True, found, distance or Distance())


def rounded(x: float) -> float:
    """To four digits.

    >>> rounded(0.0123456)
    0.01235
    """
    return float(f"{x:.4g}")


def no_bound(rows: int) -> Bound | None:
    """Nothing is known."""
    return None
