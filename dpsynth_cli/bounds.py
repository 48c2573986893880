"""What is known of the error of a release without the data: a bound on the Wasserstein distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bound:
    """What the W1 distance (l_inf, unit cube) between the real and the synthetic table is on average at most,
    whatever the real one is; and of which algorithm that is said, after "of".

    One `of_answers` follows from the noisy answers of a release: it varies with them, and W1 is on average at
    most its own average. `terms` names what it is the sum of.
    """

    w1: float
    of: str
    of_answers: bool = False
    terms: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_terms(cls, of: str, **terms: float) -> Bound:
        """From answers: the sum of its terms, rounded, so that every machine says the same."""
        return cls(rounded(sum(terms.values())), of, True, {name: rounded(t) for name, t in terms.items()})


def rounded(x: float) -> float:
    """To four digits.

    >>> rounded(0.0123456)
    0.01235
    """
    return float(f"{x:.4g}")


def no_bound(rows: int) -> Bound | None:
    """Nothing is known."""
    return None
