"""Judge a synthetic file by the real one: `dpsynth evaluate`, and the yardsticks whose folder is given.

The yardsticks are scripts that know nothing of dpsynth, so that any tool's file is judged alike: evaluate.py (1- and
2-way distances, sliced W1, classifiers), kway.py (the k-way protocol of the PrivMRF paper) and analyst.py (what an
analyst would notice). They run as they are, in processes of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.tables import Real

YARDSTICKS = ("dpsynth", "evaluate", "kway", "analyst")


def judged(
    table: Real, made: Path, folder: Path, tools: Path | None, by: Iterable[str], auc: bool = True
) -> dict[str, float]:
    """The figures of one synthetic file, those of a yardstick whose folder is not given left out."""
    found: dict[str, float] = {}
    for yardstick in by:
        if yardstick == "dpsynth":
            found |= by_dpsynth(table, made)
        elif tools is not None:
            run = {"evaluate": by_evaluate, "kway": by_kway, "analyst": by_analyst}[yardstick]
            found |= run(table, made, folder, tools, auc)
    return found


def by_dpsynth(table: Real, made: Path) -> dict[str, float]:
    """What `dpsynth evaluate` says of the 1-, 2- and 3-way tables."""
    from dpsynth_cli.evaluate.compare import compare

    spec = table.spec("marginals", 1.0)
    said = compare(spec, str(made), metrics=("marginals",), references=False)
    figures = said["metrics"]["marginals"]["synthetic"]
    return {f"dpsynth {key}": value["mean"] for key, value in figures.items() if "mean" in value}


def by_evaluate(table: Real, made: Path, folder: Path, tools: Path, auc: bool) -> dict[str, float]:
    """Distances over all pairs, sliced W1; and AUC where there are test rows, a target and scikit-learn."""
    schema = folder / "schema.json"
    schema.write_text(json.dumps(table.schema()))
    auc = auc and table.test is not None and table.target is not None and find_spec("sklearn") is not None
    more = [] if auc else ["--no-tstr"]
    said = printed(tools / "evaluate.py", table.train, table.test or table.train, made, schema, *more)
    found = {
        "1-way": said["tv1_mean"],
        "2-way": said["tv2_mean"],
        "worst pair": said["tv2_max"],
        "swd1": said["swd1"],
    }
    if "w1_2d" in said:
        found["W1"] = said["w1_2d"]
    return found | ({"AUC": said["tstr"]["mean_roc_auc"]} if auc else {})


def by_kway(table: Real, made: Path, folder: Path, tools: Path, auc: bool) -> dict[str, float]:
    """Random 3-, 4- and 5-way tables; every pair is in `by_evaluate`."""
    most = ["--most-cells", table.most_cells] if table.most_cells else []
    said = printed(tools / "kway.py", table.train, made, *most)
    return {key: value for key, value in said.items() if key != "2-way"}


def by_analyst(table: Real, made: Path, folder: Path, tools: Path, auc: bool) -> dict[str, float]:
    nominal = ",".join(column.name for column in table.domain if column.type == "nominal")
    said = printed(tools / "analyst.py", table.train, made, "--json", "--nominal", nominal)["synthetic"]
    return {f"analyst {key}": value for key, value in said.items() if not isinstance(value, str)}


def printed(script: Path, *arguments: object) -> dict[str, Any]:
    """The JSON that a script prints."""
    if not script.exists():
        sys.exit(f"{script} does not exist: --tools DIR or $DPSYNTH_TOOLS")
    command = [sys.executable, "-W", "ignore", str(script), *map(str, arguments)]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
