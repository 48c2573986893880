"""The Python API: the page about it runs as it stands; data in memory has the same integers as a file."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpsynth_cli import api as dpsynth
from dpsynth_cli.api import as_file
from dpsynth_cli.errors import UsageError
from dpsynth_cli.trusted.rows.read import open_scan
from tests.conftest import ROOT


def test_the_page_about_python_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) == 3
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert set(dpsynth.__all__) == set(re.findall(r"^\| `(\w+)", page, re.M)) | {"Receipt", "Spec"}


def codes(people, data) -> dict[str, list[int]]:
    spec = dpsynth.load_spec(people())
    with as_file(data, "") as path:
        scan = open_scan(path, spec.domain.columns, spec.csv)
        pieces = [scan.encode(piece) for piece in scan.pieces()]
        return {c.name: np.concatenate([part[c.name] for part in pieces]).tolist() for c in spec.domain}


def test_a_data_frame_has_the_same_integers_as_its_file(people, tmp_path):
    people()
    frame = pd.read_csv(tmp_path / "people.csv")
    assert codes(people, frame) == codes(people, tmp_path / "people.csv")
    assert codes(people, pa.Table.from_pandas(frame)) == codes(people, frame)
    # One odd cell makes pandas keep the column as objects; the other rows' integers stay as they are.
    before = codes(people, frame)
    odd = frame.astype({"age": object})
    odd.loc[7, "age"] = "twelve \ud800"
    after = codes(people, odd)
    for name in before:
        assert [a for i, a in enumerate(after[name]) if i != 7] == [
            b for i, b in enumerate(before[name]) if i != 7
        ]


def test_a_release_of_a_data_frame_is_that_of_its_file(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people("marginals", "100000")
    frame = pd.read_csv(tmp_path / "people.csv")
    receipt = dpsynth.release(path, frame, ledger=tmp_path / "l.sqlite")
    assert receipt.rows == len(receipt.table()) == 300
    audit = json.loads((tmp_path / "out/people.audit.public.json").read_text())
    assert audit == receipt.public
    assert "input" not in audit["spec"]
    assert dpsynth.Ledger(tmp_path / "l.sqlite").log()[0].kind == "reserve"
    assert not list(tmp_path.glob("dpsynth-*"))


def test_a_spec_without_data_is_refused(people, tmp_path):
    document = dict(dpsynth.load_spec(people()).effective)
    del document["input"]
    with pytest.raises(UsageError, match="names no input"):
        dpsynth.release(document, ledger=tmp_path / "l.sqlite")
    assert not (tmp_path / "l.sqlite").exists()
