"""`microaggregation`: covariance loss; private axes, a grid on them, noisy marginals in every cell.

microaggregation   the mechanism, with a delta or without
grid               a grid on private axes, as a question names it
covariance         axes from one noisy Gram matrix, and the edge of its noise
products           parts of a mixture of product distributions, from noisy answers
mixture            rows of such a mixture
constraints        public convex constraints (`convex`), polytope, cones: projection on them
printed            the paper's Algorithm 2 with its own constants; for comparison
"""

from dpsynth_cli.mechanisms.microaggregation.microaggregation import MECHANISM

__all__ = ["MECHANISM"]
