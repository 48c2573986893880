"""Private PCA, then a measure in the subspace: Y. He, T. Strohmer, R. Vershynin and Y. Zhu, "Differentially
private low-dimensional synthetic data from high-dimensional datasets" (2023), Algorithms 1-5.

X are the rows as y in [-1/2, 1/2]^d, M their covariance (inside the classes), V its first d' eigenvectors,
Lambda their eigenvalues, tau the noise of an entry of M, X' the synthetic points in the subspace.

Where this is not the printed algorithm (privacy.md):
- every question is priced under the one relation of the spec, and n is private where it says so (E10);
- M and the mean come from the sums of y and y y^T about the public centre: 24 times less noise (E11), and
  the mean's noise is that of d columns (E13);
- X'' = X' + mean, the synthetic X' (E12); metric projection, and codes of the declared grid;
- classes are asked by class, and their sizes are paid for (E14);
- d' counts the eigenvalues above the noise edge 2 tau sqrt(d), shrunk; it may be 0 (E15);
- the ball of radius R is a box of four standard deviations, and no larger than the cube's image (E16).

Beyond the paper: `inside: gaussian` is N(mean, V Lambda V^T + D), D what the columns have left. With classes
the means are drawn towards each other as far as their noise says, axes are found in all classes together,
a class's deviations are scaled by the room that its mean leaves, and its own covariance in the subspace
replaces that as far as it stands above its noise. Missing values are at the centre in all sums; their rate
is asked for once, undone, and drawn independently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli import budget
from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.inside import Measure, counted_axes, measure
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.sizes import Sizes, sizes_and_rest
from dpsynth_cli.numeric.histogram import drawn_to, shuffled, whole
from dpsynth_cli.numeric.projection import normals, room, rounded, to_codes, towards_pooled
from dpsynth_cli.numeric.sampling import portions
from dpsynth_cli.numeric.spectrum import (
    Axes,
    axes,
    beyond_noise,
    covariance,
    entry_sd,
    mirrored,
    noise_edge,
    root,
)
from dpsynth_cli.questions import Answer, Ask, Bins, Block, CellCounts, Cells, Floats, Model, Moments, Question
