"""What a row of a stream costs that is pushed and later taken away: it is in two events."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsynth_cli.numbers import exact
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.gaussian import epsilon_of_rho, rho_of_epsilon


def gone_again(spec: Spec) -> str:
    """A sentence for the audit; nothing where rows cannot be taken away."""
    privacy = spec.privacy
    if privacy.epsilon is None or privacy.neighbours != "add_remove" or spec.params.algorithm == "sparse":
        return ""
    at = f"epsilon {exact(2 * privacy.epsilon)}"
    if privacy.delta is not None:
        both = epsilon_of_rho(2 * rho_of_epsilon(privacy.epsilon, privacy.delta), privacy.delta)
        up = Fraction(math.ceil(1000 * both), 1000)
        at = f"epsilon {exact(up)} and delta {exact(privacy.delta)}"
    return (
        " A row that is pushed and later taken away (stream push --delete) is in two events, and both "
        f"together are protected at {at}."
    )
