"""The Spark recipe in engines/README.md, run as it is printed, gives the sums of the local engine."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_cli.release.files.write import decode
from dpsynth_cli.trusted import engines
from dpsynth_cli.trusted.engines import local
from dpsynth_cli.trusted.rows.read import open_scan
from tests.trusted.sums.test_tally import MISFITS, OMEGA, QUESTIONS, some_rows

README = Path(engines.__file__).with_name("README.md")


def recipe() -> dict:
    """What the only Python block of the page defines."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), flags=re.M | re.S)
    names: dict = {}
    exec(code, names)
    return names


def test_the_recipe_is_an_engine():
    assert isinstance(recipe()["spark_engine"](table=None), engines.Engine)


@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_sums_of_the_local_engine_to_the_last_bit(tmp_path, monkeypatch):
    pyspark = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    if not shutil.which("java"):
        pytest.skip("there is no Java for Spark")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    codes = some_rows(np.random.default_rng(4), 3_000)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({c.name: decode(codes[c.name], c) for c in OMEGA}), path, row_group_size=500)
    scan = open_scan(str(path), OMEGA.columns)
    session = (
        pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    try:
        table = session.read.parquet(str(path)).repartition(5)
        for questions in ([*QUESTIONS, *MISFITS], QUESTIONS[:1]):
            found, rows = recipe()["spark_engine"](table).sum_over(scan, OMEGA, questions)
            assert rows == 3_000
            assert all(map(np.array_equal, found, local.sum_over(scan, OMEGA, questions)[0]))
    finally:
        session.stop()
