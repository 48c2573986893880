"""Which tables and parameters a stream takes."""

from __future__ import annotations

from typing import Any

from dpsynth_cli.domain import Domain


def fits(omega: Domain, params: Any) -> list[str]:
    """What is wrong with the columns or parameters."""
    if params.algorithm == "joint":
        return _fits_joint(omega, params)
    problems = _fits_horizon(params)
    if not 1 <= len(omega.columns) <= 5:
        problems.append(
            f"online takes 1 to 5 columns by a tree, not {len(omega.columns)}; set mechanism.algorithm to "
            "joint"
        )
    if omega.strata:
        problems.append("online takes no strata: its tree has the label like any other column")
    if params.arrivals == "public" and omega.neighbours != "replace_one":
        problems.append(
            "mechanism.arrivals is public, but adding or removing a row changes how many arrive; set "
            "privacy.neighbours to replace_one, or arrivals to private"
        )
    if params.algorithm == "sparse" and omega.unit_rows is not None:
        problems.append(
            "mechanism.algorithm is sparse, which counts for single rows, and privacy.unit is stated; set "
            "algorithm to blocks"
        )
    if params.arrivals == "public" and omega.unit_rows is not None:
        problems.append(
            "mechanism.arrivals is public, but with privacy.unit how many rows a unit has is private; set "
            "arrivals to private"
        )
    if (params.algorithm, params.arrivals) == ("sparse", "private") and not omega.rows_hint:
        problems.append(
            "mechanism.algorithm is sparse and arrivals are private: its partition follows a public guess; "
            "set rows_hint to the number of rows that a push usually has"
        )
    return problems


def _fits_horizon(params: Any) -> list[str]:
    if params.horizon is None or params.algorithm == "blocks":
        return []
    why = "whose epochs begin anew" if params.algorithm == "joint" else "whose time levels double for ever"
    return [
        f"mechanism.horizon is {params.horizon}, and algorithm is {params.algorithm}, {why}; leave horizon "
        "out, or set algorithm to blocks"
    ]


def _fits_joint(omega: Domain, params: Any) -> list[str]:
    from dpsynth_cli.mechanisms import joint

    problems = joint.fits(omega, joint.Params()) + _fits_horizon(params)
    if params.arrivals == "public":
        problems.append(
            "mechanism.algorithm is joint, where arrivals are private; leave mechanism.arrivals out"
        )
    if omega.neighbours != "add_remove":
        problems.append(
            "mechanism.algorithm is joint, whose tables are counted under add_remove; set "
            "privacy.neighbours to that"
        )
    return problems
