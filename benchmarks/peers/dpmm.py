"""MST or AIM of dpmm on the Adult table; needs its own environment.

    python -m venv peer && peer/bin/pip install dpmm==0.1.9
    peer/bin/python -m benchmarks peers.dpmm --data DIR --model mst --out OUT.csv [--epsilon 1] [--delta 1e-9]

A tenth of epsilon goes to its own private bins of numeric columns, as its defaults have it; the domain is the
schema's. Judge the file with `python -m benchmarks joint --made`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.harness import Finding, timed
from benchmarks.peers import adult
from benchmarks.peers import options as options


def synthesize(given: argparse.Namespace) -> Iterator[Finding]:
    import pandas as pd
    from dpmm import pipelines

    train, columns = adult(given)
    table = pd.read_csv(train, keep_default_na=False)
    domain = {}
    for column in columns:
        name = column["name"]
        if column["type"] == "categorical":
            table[name] = pd.Categorical(table[name], categories=column["categories"])
            domain[name] = {"categories": column["categories"]}
        else:
            domain[name] = {"lower": column["min"], "upper": column["max"]}
    pipeline = (pipelines.MSTPipeline if given.model == "mst" else pipelines.AIMPipeline)(
        epsilon=0.9 * given.epsilon, delta=given.delta, proc_epsilon=0.1 * given.epsilon, n_jobs=1
    )

    def fitted() -> pd.DataFrame:
        pipeline.fit(table, domain)
        return pipeline.generate(n_records=len(table))

    made, seconds = timed(fitted)
    made[[column["name"] for column in columns]].to_csv(given.out, index=False)
    yield {"model": given.model, "epsilon": given.epsilon, "delta": given.delta, "CPU s": seconds}


PARTS = {"synthesize": synthesize}
