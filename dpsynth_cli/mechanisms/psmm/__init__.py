"""`psmm`: a private signed measure on a lattice, made a measure by an exact flow.

psmm       the mechanism
lattices   its parameters, and the lattice that they and the number of rows ask for
guarantee  bounds on W1: by noise alone, and by the release's own counts
slopes     where in its cell a row is likely to be, by the cells beside it
"""

from dpsynth_cli.mechanisms.psmm.psmm import MECHANISM

__all__ = ["MECHANISM"]
