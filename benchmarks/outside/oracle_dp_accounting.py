"""dp_accounting as the judge of our conversions: reads cases as JSON, prints its own numbers beside each.

A case is {"kind": .., numbers}. What it gives back has the same order: epsilon_of_rho, rho_of_epsilon the
analytic Gaussian mechanism (`get_epsilon_gaussian`, `get_sigma_gaussian`) rho_of_pure how far randomised
response is above Gaussian noise of that mu, at any epsilon laplace, gaussian the epsilon, or delta, of
several mechanisms together by privacy loss distributions
"""

import json
import math
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian
from dp_accounting.pld import privacy_loss_distribution as pld


def answer(case):
    kind = case["kind"]
    if kind == "epsilon_of_rho":
        return get_epsilon_gaussian(1 / math.sqrt(2 * case["rho"]), case["delta"])
    if kind == "rho_of_epsilon":
        return 1 / (2 * get_sigma_gaussian(case["epsilon"], case["delta"]) ** 2)
    if kind == "rho_of_pure":
        epsilon = case["epsilon"]
        response = pld.from_randomized_response(2 / (1 + math.exp(epsilon)), 2, pessimistic_estimate=False)
        noise = pld.from_gaussian_mechanism(
            1 / math.sqrt(2 * case["rho"]), value_discretization_interval=1e-4
        )
        at = np.linspace(0, 1.2 * epsilon, 61)
        return float(max(response.get_delta_for_epsilon(e) - noise.get_delta_for_epsilon(e) for e in at))
    if kind == "laplace":
        parts = [pld.from_discrete_laplace_mechanism(1 / scale, moved) for scale, moved in case["parts"]]
    else:
        parts = [
            pld.from_gaussian_mechanism(sigma, sensitivity=moved, value_discretization_interval=1e-4)
            for sigma, moved in case["parts"]
        ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    if kind == "laplace":
        return whole.get_epsilon_for_delta(0)
    return whole.get_delta_for_epsilon(case["epsilon"])


def main():
    cases = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("dp-accounting"), "answers": [answer(case) for case in cases]}))


if __name__ == "__main__":
    main()
