"""OpenDP as the judge of our samplers: reads cases as JSON, prints its draws as counts and its own price of
each.

A case is {"noise": "discrete_laplace" or "discrete_gaussian", "scale": .., "count": ..}: a scale, or sigma.
"""

import json
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import opendp.prelude as dp

dp.enable_features("contrib")


def answer(case):
    laplace = case["noise"] == "discrete_laplace"
    distance = dp.l1_distance(T="i64") if laplace else dp.l2_distance(T="i64")
    space = dp.vector_domain(dp.atom_domain(T="i64")), distance
    make = dp.m.make_laplace if laplace else dp.m.make_gaussian
    measurement = make(*space, scale=case["scale"])
    drawn = Counter(measurement([0] * case["count"]))
    return {"counts": [[int(x), n] for x, n in drawn.items()], "price": measurement.map(1)}


def main():
    cases = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("opendp"), "answers": [answer(case) for case in cases]}))


if __name__ == "__main__":
    main()
