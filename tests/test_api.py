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


def test_a_table_of_csv_has_the_declared_types_and_its_labels(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = people("marginals", "100000")
    text = spec.read_text().replace('categories: [a, b, "c,d"]', 'categories: [a, NA, "c,d"]')
    spec.write_text(text + "  day: {type: date, bounds: [2020-01-01, 2020-12-31]}\n  yes: {type: boolean}\n")
    rows = (tmp_path / "people.csv").read_text().splitlines()
    more = [line.replace(",b", ",NA") + ",2020-02-03,true" for line in rows[1:]]
    more = [rows[0] + ",day,yes", *more]
    (tmp_path / "people.csv").write_text("\n".join(more) + "\n")
    table = dpsynth.release(spec, ledger=tmp_path / "l.sqlite").table()
    assert [str(table[name].dtype) for name in ("age", "score", "yes")] == ["Int64", "float64", "boolean"]
    assert table["day"].dt.year.unique().tolist() == [2020]
    assert (table["group"] == "NA").sum() > 50


def test_what_a_user_can_cause_says_so(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = people("marginals", "100000")
    receipt = dpsynth.release(spec, ledger=tmp_path / "l.sqlite")
    ledger = dpsynth.Ledger(tmp_path / "l.sqlite")
    checked = dpsynth.verify(receipt.files["audit"], ledger=ledger)
    assert checked[-1].startswith("the ledger: an unbroken chain")
    one, other = (dpsynth.sample(receipt.files["transcript"], 50) for _ in range(2))
    assert not one.equals(other)
    for wrong in (
        lambda: dpsynth.sample(receipt.files["transcript"], -1),
        lambda: dpsynth.sample(receipt.files["transcript"], "5"),
        lambda: dpsynth.release(spec, [1, 2], ledger=ledger),
        lambda: dpsynth.load_spec(spec, **{"privacy.epsilon": "0.5"}),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match=r"the spec: columns\.a\.type") as error:
        dpsynth.load_spec(dict(dpsynth.load_spec(spec).effective) | {"columns": {"a": {"type": "text"}}})
    assert "another version" not in str(error.value)
    assert "guarantee" not in repr(receipt)
