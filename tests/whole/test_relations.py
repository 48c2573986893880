"""Derived columns and rules hold in every row of every mechanism's release, whatever the real rows are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth_cli.mechanisms.registry import mechanisms

EVERY = [name for name, one in mechanisms().items() if not one.stream]
SPEC = """\
dpsynth: 1
name: trips
input: trips.csv
output: out/trips.{ending}
rows: 700
privacy: {{epsilon: {epsilon}{delta}}}
mechanism: {{name: {mechanism}{more}}}
columns:
  left:  {{type: integer, bounds: [0, 2359]}}
  back:  {{type: integer, bounds: [0, 2359], nullable: true}}
  class: {{type: integer, bounds: [1, 3]}}
  fare:  {{type: continuous, bounds: [0, 100], nullable: true}}
  kind:  {{type: ordinal, categories: [third, second, first]}}
  hour:  {{type: ordinal, categories: [{hours}]}}
  day:   {{type: date, bounds: [2026-01-01, 2026-12-31]}}
derive:
  hour: left // 100
  late: if back is missing then missing else back >= 2200
  weekend: weekday(day) in [6, 7]
  next_week: day + 7
  cheap: fare * 0.9
  season:
    of: month(day)
    table: {{12: winter, 1: winter, 2: winter, 6: summer, 7: summer, 8: summer}}
    else: mild
rules:
  always:
    - left <= back
    - if kind == "third" then fare < 50
    - left % 100 < 60 and back % 100 < 60
    - not weekend or hour >= 6
  impossible:
    - {{kind: first, back: {{from: 2000}}}}
  missing_with: {{fare: back}}
  determines: {{kind: {{class: {{third: 3, second: 2, first: 1}}}}}}
"""


@pytest.fixture
def trips(tmp_path):
    """Write trips.csv, most of whose rows break a rule, and a spec for it."""

    def write(
        mechanism: str, more: str = "", epsilon: object = 2, delta: str = "", ending: str = "csv"
    ) -> Path:
        rng = np.random.default_rng(8)
        lines = ["day,left,back,fare,kind,class,hour"]
        for _ in range(600):
            back = "" if rng.random() < 0.2 else rng.integers(0, 2400)
            fare = "" if rng.random() < 0.2 else round(rng.random() * 100, 2)
            day = f"2026-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}"
            kind = rng.choice(["third", "second", "first", "fourth"])
            lines.append(f"{day},{rng.integers(0, 2400)},{back},{fare},{kind},{rng.integers(1, 4)},99")
        (tmp_path / "trips.csv").write_text("\n".join(lines) + "\n")
        spec = tmp_path / "spec.yaml"
        spec.write_text(
            SPEC.format(
                mechanism=mechanism,
                more=more,
                epsilon=epsilon,
                delta=delta,
                ending=ending,
                hours=", ".join(map(str, range(24))),
            )
        )
        return spec

    return write


def read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        return frame.astype({"kind": str, "hour": str, "season": str, "day": str, "next_week": str})
    return pd.read_csv(path, dtype={"hour": str, "late": "boolean"})


def check_every_row(made: pd.DataFrame) -> None:
    """All that the spec states, written once more by hand."""
    gone = made.back.isna()
    assert list(made) == [
        "left", "back", "class", "fare", "kind", "hour", "day", "late", "weekend", "next_week", "cheap",
        "season",
    ]  # fmt: skip
    assert (made.hour == (made.left // 100).astype(str)).all()
    assert (made.fare.isna() == gone).all()
    assert (made["class"] == made.kind.map({"third": 3, "second": 2, "first": 1})).all()
    assert ((made.left <= made.back) | gone).all()
    assert ((made.kind != "third") | (made.fare < 50) | gone).all()
    assert (made.left % 100 < 60).all()
    assert ((made.back % 100 < 60) | gone).all()
    assert not ((made.kind == "first") & (made.back >= 2000)).any()
    day = pd.to_datetime(made.day)
    assert (made.weekend == (day.dt.day_of_week >= 5)).all()
    assert (~made.weekend | (made.left >= 600)).all()
    assert (pd.to_datetime(made.next_week) == day + pd.Timedelta(days=7)).all()
    assert (made.late.isna() == gone).all()
    assert ((made.late.fillna(False)) == ((made.back >= 2200) & ~gone)).all()
    assert np.array_equal(made.cheap.to_numpy(float), made.fare.to_numpy(float) * 0.9, equal_nan=True)
    months = {12: "winter", 1: "winter", 2: "winter", 6: "summer", 7: "summer", 8: "summer"}
    assert (made.season == day.dt.month.map(months).fillna("mild")).all()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("strata", ["", ", strata: kind"])
@pytest.mark.parametrize("mechanism", EVERY)
def test_every_relation_holds_in_every_row(dpsynth, trips, tmp_path, mechanism, strata, ending):
    if strata and ending == "parquet":
        pytest.skip("the same rows in another file")
    # An epsilon at which no mechanism can lose the missing values to its noise.
    less = ", depth: 12" if mechanism == "pmm" else ""  # its default is for more rows, and slow here
    spec = trips(mechanism, strata + less, epsilon=30, ending=ending)
    ran = dpsynth("release", spec)
    if ran.code == 2 and strata and "strata" in ran.err:
        pytest.skip("the mechanism takes no strata")
    assert ran.code == 0, ran.err
    made = read(tmp_path / f"out/trips.{ending}")
    assert len(made) == 700
    assert made.left.nunique() > 20
    assert 0 < made.back.isna().sum() < 650
    assert made.kind.nunique() == 3
    check_every_row(made)
    # The file follows from the transcript, and more rows keep the relations too.
    assert dpsynth("verify", "out/trips.audit.public.json").code == 0
    sampled = f"more.{ending}"
    assert dpsynth("sample", "out/trips.transcript.arrow", "-n", 1500, "-o", sampled, "--seed", 3).code == 0
    more = read(tmp_path / sampled)
    assert len(more) == 1500
    check_every_row(more)


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-3"])
@pytest.mark.parametrize("mechanism", EVERY)
def test_they_hold_where_noise_drowns_everything(dpsynth, trips, tmp_path, mechanism, epsilon):
    ran = dpsynth("release", trips(mechanism, epsilon=epsilon))
    if ran.code == 2:
        pytest.skip("too little epsilon for the mechanism")
    assert ran.code == 0, ran.err
    check_every_row(read(tmp_path / "out/trips.csv"))


def test_what_is_computed_is_never_read_and_nothing_is_asked_of_it(dpsynth, trips, tmp_path):
    spec = trips("marginals")
    assert dpsynth("release", spec).code == 0
    public = json.loads((tmp_path / "out/trips.audit.public.json").read_text())
    asked = {name for charge in public["budget"]["charges"] for name in charge["columns"]}
    assert asked == {"left", "back", "fare", "kind", "day"}
    assert public["output"]["columns"][-5:] == ["late", "weekend", "next_week", "cheap", "season"]
    # The input needs no such column, and what it holds changes nothing that is asked.
    real = pd.read_csv(tmp_path / "trips.csv").drop(columns=["hour", "class"])
    real.to_csv(tmp_path / "trips.csv", index=False)
    assert dpsynth("release", spec, "--output", "again.csv").code == 0
    check_every_row(read(tmp_path / "again.csv"))


def test_a_paid_evaluation_and_the_private_size_go_with_relations(dpsynth, trips, tmp_path):
    spec = trips("joint")
    ran = dpsynth("release", spec, "--set", "evaluate.epsilon=0.5", "--set", "rows=noisy")
    assert ran.code == 0, ran.err
    check_every_row(read(tmp_path / "out/trips.csv"))
    assert dpsynth("verify", "out/trips.audit.public.json").code == 0


def test_snapshots_of_a_stream_keep_relations(dpsynth, trips, tmp_path):
    spec = trips("online")
    spec.write_text(spec.read_text().replace("rows: 700\n", "rows: 700\nrows_hint: 600\n"))
    assert dpsynth("stream", "init", spec).code == 0
    for day in range(3):
        assert dpsynth("stream", "push", spec, "trips.csv", "--batch-id", day, "--publish").code == 0
        check_every_row(read(tmp_path / "out/trips.csv"))
    assert dpsynth("verify", "out/trips.audit.public.json").code == 0
    spec.write_text(spec.read_text().replace("hour: left // 100", "hour: left // 101"))
    ran = dpsynth("stream", "push", spec, "trips.csv", "--batch-id", "x")
    assert ran.code == 2
    assert "was started with another derive" in ran.err


def test_a_release_by_groups_takes_none(dpsynth, trips):
    ran = dpsynth("check", trips("microaggregation", ", guarantee: groups, group_size: 5"))
    assert ran.code == 2
    said = "is stated, but a release by groups is not differentially private; leave it out"
    assert f"derive {said}" in ran.err
    assert f"rules {said}" in ran.err
