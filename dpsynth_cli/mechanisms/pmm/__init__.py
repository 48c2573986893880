"""`pmm`: a private measure on a tree of halved columns.

pmm         the mechanism
levels      depth, measured levels, the paper's shares and its bound
guarantee   a bound on W1 by the release's own counts
quantiles   the copula transform: columns by private ranks
"""

from dpsynth_cli.mechanisms.pmm.pmm import MECHANISM

__all__ = ["MECHANISM"]
