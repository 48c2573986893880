"""`psmm`: a private signed measure on a lattice, made a measure by an exact flow.

psmm      the mechanism
slopes    where in its cell a row is likely to be, by the cells beside it
"""

from dpsynth_cli.mechanisms.psmm.psmm import MECHANISM

__all__ = ["MECHANISM"]
