"""`lowdim`: private PCA, then a measure in the subspace.

lowdim       the mechanism: dimension, axes, shares
sums         which sums are asked for, and with what share
near         sums about private means, of rows that are pulled in
noisy_sums   the questions: sums of y and y y^T, and their answers
classes      means and covariances of several classes, pooled
inside       counts in the subspace by pmm or psmm
guarantee    a bound on W1 for rows that were counted (Theorem 4.2)
tail         what the noise of the sums can hide of it, proved
moments      private means and covariances as an output of their own
printed      the paper's algorithms to the letter but for the errata
pieces       drawing: points of each class, back on the declared grid
"""

from dpsynth_cli.mechanisms.lowdim.lowdim import MECHANISM

__all__ = ["MECHANISM"]
