"""MST or AIM of dpmm on the Adult table: writes a synthetic CSV for the judge, and says its CPU seconds.

    python -m venv peer && peer/bin/pip install dpmm==0.1.9
    peer/bin/python benchmarks/peer_dpmm.py DATA mst OUT.csv [--epsilon 1] [--delta 1e-9]
    python DATA/../tools/evaluate.py DATA/adult/train.csv DATA/adult/test.csv OUT.csv DATA/adult/schema.json

A tenth of epsilon goes to its own private bins of numeric columns, as its defaults have it; the domain is the
schema's. It needs its own environment, and nothing of dpsynth.
"""

import argparse
import json
import time
from pathlib import Path

import pandas as pd

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("data", type=Path)
parser.add_argument("model", choices=["mst", "aim"])
parser.add_argument("out")
parser.add_argument("--epsilon", type=float, default=1.0)
parser.add_argument("--delta", type=float, default=1e-9)
given = parser.parse_args()

columns = json.loads((given.data / "adult" / "schema.json").read_text())["columns"]
table = pd.read_csv(given.data / "adult" / "train.csv", keep_default_na=False)
domain = {}
for column in columns:
    name = column["name"]
    if column["type"] == "categorical":
        table[name] = pd.Categorical(table[name], categories=column["categories"])
        domain[name] = {"categories": column["categories"]}
    else:
        domain[name] = {"lower": column["min"], "upper": column["max"]}

if given.model == "mst":
    from dpmm.pipelines import MSTPipeline as Pipeline
else:
    from dpmm.pipelines import AIMPipeline as Pipeline
start = time.process_time()
pipeline = Pipeline(
    epsilon=0.9 * given.epsilon, delta=given.delta, proc_epsilon=0.1 * given.epsilon, n_jobs=1
)
pipeline.fit(table, domain)
made = pipeline.generate(n_records=len(table))
print(f"{given.model}: {time.process_time() - start:.0f} s of CPU", flush=True)
made[[column["name"] for column in columns]].to_csv(given.out, index=False)
