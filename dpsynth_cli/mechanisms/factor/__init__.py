"""`factor`: latent normals linked to columns of every type.

factor     the mechanism: `release: model`
latent     latent correlation from noisy pair tables
links      from latent normals to cells and back
printed    the paper's release by rows, corrected where it was not private; for reference
"""

from dpsynth_cli.mechanisms.factor.factor import MECHANISM

__all__ = ["MECHANISM"]
