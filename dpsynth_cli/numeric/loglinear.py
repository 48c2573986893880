"""A log-linear model of a table by noisy means of functions of its cells: penalised maximum entropy.

p is proportional to exp(sum of theta f), f functions of the residual basis. The weights theta make

    log sum(exp(sum theta f)) - sum theta m + sum penalty theta^2 / 2

least, m being the noisy means: without a penalty the distribution of most entropy that has just these means
(Jaynes 1957; Darroch and Ratcliff 1972). With it a mean may be missed by penalty times theta. It is convex,
and Newton's method finds its one minimum: second derivatives are the covariances of f under p. They are
applied, in conjugate gradients, to what nearly undoes them: covariances as if columns were independent, or
written down and rounded. Every processor finds the same bits (`exact.py`): steps that do not come to rest
would make a last bit grow until rows differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp, gram, log, solver
from dpsynth_cli.numeric.residual import Basis

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Solve: TypeAlias = Callable[[Floats], Floats]

STEPS = 60  # of Newton's method, at most
NEAR = 1e-9  # what a step would gain, in nats: no more is worth one
DIRECT = 4096  # functions, at most, whose products are functions too: their covariances are written down
PRODUCTS = 2**33  # of functions, functions and cells, up to which covariances of others can be written down,
VALUES = 2**25  # and of functions and cells. They are:
AT_ONCE = 2**31  # from the beginning, up to so many products;
HARD = 5  # else after so many steps in which conjugate gradients did not come to their end;
STALE = 12  # and anew where conjugate gradients take more steps with them
INNER, MORE = 60, 300  # of conjugate gradients in a step, at most; more in few cells:
WORK = 2**22  # cells times these, at most,
ALL, FEWEST = 2**26, 600  # and times those of all steps, but so many in any case
SHORTER = 30  # halvings of a step, at most
ROUNDED = 14  # digits of a probability


def fitted(
    basis: Basis,
    index: Ints,
    means: Floats,
    penalty: Floats,
    never: NDArray[np.bool_] | None = None,
    start: Floats | None = None,
) -> tuple[Floats, Floats, float]:
    """The distribution, the weights of the functions of these numbers, and what another step would gain: less
    than `NEAR`, but where steps came to their end before. `penalty` is above 0.

    `never` has the cells in which no row can be; `start` has weights to begin with.
    """
    theta = np.zeros(len(index)) if start is None else start.copy()
    weights = np.zeros(basis.cells)
    cells = np.arange(basis.cells) if never is None else np.flatnonzero(~never)
    many = len(index) * len(cells)
    signs = set(basis.sizes) <= {1, 2}
    few = many <= VALUES and many * len(index) <= PRODUCTS
    written: Floats | None = None

    def state(theta: Floats) -> tuple[float, Floats]:
        weights[index] = theta
        p = basis.values(weights)
        if never is not None:
            p[never] = -np.inf
        highest = float(p.max())
        p -= highest
        p = exp(p)
        whole = float(p.sum())
        value = highest + float(log(whole)) - float((theta * (means - penalty * theta / 2)).sum())
        return value, p / whole

    inner = max(INNER, min(MORE, WORK // basis.cells))
    steps = STEPS if signs or few else min(STEPS, max(ALL // basis.cells, FEWEST) // inner)
    most = 0 if many * len(index) <= AT_ONCE else HARD
    value, p = state(theta)
    taken, unfinished, nearly, gain = 0, 0, None, 0.0
    for _ in range(steps):
        every = basis.means(p)
        here = every[index]
        down = means - here - penalty * theta
        if signs:  # the product of two functions is a function
            step = _solve(every[index[:, None] ^ index], here, penalty)(down)
        else:
            unfinished += taken == inner
            if few and (unfinished >= most if written is None else taken > STALE):
                written = basis.functions(index, cells) if written is None else written
                nearly = _solve(_products(written, p[cells]), here, penalty)
            elif written is None or nearly is None:
                nearly = _as_if_independent(basis, index, p, penalty)
            moved = _covariances(basis, index, p, here, penalty)
            step, taken = conjugate_gradients(moved, nearly, down, inner)
        gain = float((down * step).sum())
        if gain < NEAR:
            break
        for _ in range(SHORTER):
            after, q = state(theta + step)
            if after <= value - 1e-4 * gain:
                break
            step, gain = step / 2, gain / 2
        else:
            break
        theta, value, p = theta + step, after, q
    return np.round(p, ROUNDED), theta, gain


def _covariances(basis: Basis, index: Ints, p: Floats, here: Floats, penalty: Floats) -> Solve:
    """What multiplies by covariances and penalty; `here` are the means under p."""
    weights = np.zeros(basis.cells)

    def moved(x: Floats) -> Floats:
        weights[index] = x
        away = basis.values(weights)
        away -= float((here * x).sum())
        away *= p
        return basis.means(away)[index] + penalty * x

    return moved


def _products(written: Floats, p: Floats) -> Floats:
    """The means of products of all pairs of functions."""
    rows = written * np.sqrt(p)
    length = np.sqrt(np.maximum((rows * rows).sum(axis=1), 1e-300))
    return np.asarray(gram(rows / length[:, None]) * np.multiply.outer(length, length))


def _as_if_independent(basis: Basis, index: Ints, p: Floats, penalty: Floats) -> Solve:
    """Undoes covariances and penalty as they would be if columns were independent."""
    turn, among, whole = basis.orthonormal(p), np.zeros(basis.cells), np.zeros(basis.cells)
    among[index], whole[index] = 1, penalty
    scale = among / (1 + turn.squares(whole))

    def nearly(x: Floats) -> Floats:
        whole[index] = x
        return turn.back(scale * turn.to(whole))[index]

    return nearly


def _solve(products: Floats, means: Floats, penalty: Floats) -> Solve:
    """Undoes covariances and penalty, about; covariances by means of products and products of means."""
    products -= np.multiply.outer(means, means)
    products[np.diag_indices_from(products)] += penalty
    return solver(products)


def conjugate_gradients(moved: Solve, nearly: Solve, wanted: Floats, most: int) -> tuple[Floats, int]:
    """x with moved(x) = wanted, about, for a symmetric positive map, and the steps it took; `nearly` undoes
    the map, about.

    >>> x, steps = conjugate_gradients(lambda x: x * [1.0, 4.0], lambda x: x, np.array([1.0, 1.0]), 9)
    >>> x.round(1).tolist(), steps
    ([1.0, 0.3], 7)
    """
    x, left = np.zeros(len(wanted)), wanted.copy()
    direction = nearly(left)
    size = begun = float((left * direction).sum())
    for taken in range(most):
        if size <= 1e-4 * begun:
            return x, taken
        along = moved(direction)
        step = size / float((direction * along).sum())
        x += step * direction
        left -= step * along
        turned = nearly(left)
        size, before = float((left * turned).sum()), size
        direction = turned + size / before * direction
    return x, most
