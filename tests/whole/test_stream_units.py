"""Streams that protect units: all rows of somebody, in whatever pushes, from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpsynth_cli import disk
from dpsynth_cli.release.stream import stream
from dpsynth_cli.spec.spec import load_spec
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.factorisation import FIRST, factorisation
from dpsynth_cli.trusted.stream.leaves import Leaves
from dpsynth_cli.trusted.stream.state import Store
from dpsynth_cli.trusted.stream.unit_quota import _unpacked
from tests.whole.test_stream import dies_before_step, in_a_child

SPEC = """\
dpsynth: 1
name: visits
output: out/visits.csv
privacy: {{epsilon: 1.0, neighbours: {neighbours}{delta}, unit: {{column: pid, rows: 3{per}}}}}
mechanism: {{name: online, releases_per_doubling: 10000}}
columns:
  hour: {{type: integer, bounds: [0, 23]}}
  ward: {{type: nominal, categories: [a, b, c]}}
"""


@pytest.fixture
def visits(tmp_path):
    """Writes a spec, and day_1.csv .. day_4.csv: 30 people, each in most of them."""

    def write(neighbours="add_remove", delta="", per=""):
        rng = np.random.default_rng(3)
        for day in range(1, 5):
            lines = [
                f"person-{who:04d},{rng.integers(24)},{rng.choice(list('abc'))}"
                for who in rng.integers(0, 30, 40)
            ]
            (tmp_path / f"day_{day}.csv").write_text("\n".join(["pid,hour,ward", *lines, ""]))
        (tmp_path / "spec.yaml").write_text(
            SPEC.format(
                neighbours=neighbours, delta=delta and f", delta: {delta}", per=per and f", per: {per}"
            )
        )
        return tmp_path

    return write


def push(dpsynth, day: int, *more):
    ran = dpsynth("stream", "push", "spec.yaml", f"day_{day}.csv", "--batch-id", f"d{day}", *more)
    assert ran.code == 0, ran.err
    return ran


def state_of(folder):
    ledger = Ledger(str(folder / "ledger.sqlite"))
    return Store.of(load_spec(str(folder / "spec.yaml")).name, ledger).load()


def arrived(state) -> Leaves:
    """All rows that were counted."""
    whole = state.open
    for part in state.blocks.raw:
        whole = whole + part
    return whole


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", ["", "1e-9"])
def test_a_stream_by_units_counts_at_most_k_rows_of_each_and_pays_for_k(dpsynth, visits, neighbours, delta):
    folder = visits(neighbours, delta)
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    for day in (1, 2, 3):
        push(dpsynth, day, *(["--publish"] if day == 3 else []))
    rows = [
        line.split(",")[0]
        for day in (1, 2, 3)
        for line in (folder / f"day_{day}.csv").read_text().split()[1:]
    ]
    sizes = np.unique(rows, return_counts=True)[1]
    assert arrived(state_of(folder)).rows == np.minimum(sizes, 3).sum() < len(rows)
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    audit = json.loads((folder / "out/visits.audit.public.json").read_text())
    charge = next(line for line in audit["budget"]["charges"] if line["step"] == "counts")
    norm = factorisation("rho" if delta else "epsilon").norm(FIRST)
    once = 2 if neighbours == "replace_one" else 1
    moved = 3**2 * once * norm if delta else 3 * once * norm
    assert int(charge["sensitivity"]["squared" if "squared" in charge["sensitivity"] else "value"]) == moved
    said = audit["guarantee"]["statement"]
    assert "all rows of any one pid in all pushes" in said
    assert "At most 3 rows of a unit are ever counted" in said
    assert audit["guarantee"]["unit_rows"] == 3


def test_a_unit_in_many_pushes_moves_the_counts_by_no_more_than_k(dpsynth, visits, tmp_path, monkeypatch):
    """Under one key, with and without somebody who has rows in every push."""
    import secrets

    found = []
    for number, own in enumerate((0, 4)):
        folder = visits()
        for path in folder.glob("ledger.sqlite*"):
            path.rename(tmp_path / f"old-{number}-{path.name}")
        for day in (1, 2, 3):
            path = folder / f"day_{day}.csv"
            path.write_text(path.read_text() + f"somebody,{day},c\n" * own)
        with monkeypatch.context() as patched:
            patched.setattr(secrets, "token_hex", lambda size: "ab" * size)
            assert dpsynth("stream", "init", "spec.yaml").code == 0
        for day in (1, 2, 3):
            push(dpsynth, day)
        found.append(arrived(state_of(folder)))
    moved = found[1] + -found[0]
    assert np.abs(moved.counts).sum() == 3  # of twelve rows


def test_an_undone_push_gives_back_what_it_used(dpsynth, visits):
    folder = visits()
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    push(dpsynth, 1)
    before = state_of(folder)
    push(dpsynth, 2)
    after = state_of(folder)
    assert after.units["used"] != before.units["used"]
    assert after.units["key"] == before.units["key"]
    assert dpsynth("stream", "undo", "spec.yaml", "--batch-id", "d2").code == 0
    assert state_of(folder).units == before.units
    push(dpsynth, 2)
    again = state_of(folder)
    assert again.units == after.units
    assert np.array_equal(arrived(again).counts, arrived(after).counts)


def test_a_push_that_dies_before_the_ledger_has_it_uses_nothing(dpsynth, visits, monkeypatch):
    folder = visits()
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    push(dpsynth, 1)
    before = state_of(folder)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "note", lambda *words, **more: (_ for _ in ()).throw(KeyboardInterrupt))
        assert dpsynth("stream", "push", "spec.yaml", "day_2.csv", "--batch-id", "d2").code == 130
    assert state_of(folder).units == before.units
    assert dpsynth("stream", "push", "spec.yaml", "day_2.csv", "--batch-id", "x", "--dry-run").code == 0
    assert state_of(folder).units == before.units
    push(dpsynth, 2)
    assert state_of(folder).units != before.units


def test_killed_between_any_two_steps_what_was_used_of_each_unit_is_what_was_counted(dpsynth, visits):
    folder = visits()
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    push(dpsynth, 1)
    spec, ledger = load_spec(str(folder / "spec.yaml")), Ledger(str(folder / "ledger.sqlite"))
    step = 1
    while not in_a_child(
        lambda: stream.push(spec, ledger, str(folder / "day_2.csv"), "d2"), dies_before_step(step)
    ):
        state = state_of(folder)
        used = _unpacked(state.units["used"])["rows"]
        assert used.max() <= 3
        assert used.sum() == arrived(state).rows == state.events
        step += 1
    assert step > 8
    rows = [
        line.split(",")[0] for day in (1, 2) for line in (folder / f"day_{day}.csv").read_text().split()[1:]
    ]
    assert state_of(folder).events == np.minimum(np.unique(rows, return_counts=True)[1], 3).sum()


def test_per_day_counts_each_day_anew_and_says_so(dpsynth, visits, monkeypatch):
    folder = visits(per="day")
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    for day in (1, 2, 3):
        monkeypatch.setattr(disk, "today", lambda day=day: f"2026-03-0{1 + day // 3}")
        push(dpsynth, day, "--publish")
    whole = 0
    for days in ((1, 2), (3,)):
        rows = [
            line.split(",")[0] for day in days for line in (folder / f"day_{day}.csv").read_text().split()[1:]
        ]
        whole += np.minimum(np.unique(rows, return_counts=True)[1], 3).sum()
    assert arrived(state_of(folder)).rows == whole
    audit = json.loads((folder / "out/visits.audit.public.json").read_text())
    said = audit["guarantee"]["statement"]
    assert "all rows of any one pid in the pushes of one day" in said
    assert "for m days epsilon is up to m times as large" in said
    assert dpsynth("report", "out/visits.audit.json", "--output", "page.html").code == 0
    assert "with all its rows of one day," in (folder / "page.html").read_text()
    assert dpsynth("record", "out/visits.audit.json").code == 0
    assert "All rows of one pid of one day" in (folder / "out/visits.registry.yaml").read_text()


def test_the_ledger_counts_units_and_units_of_a_day_apart(dpsynth, visits):
    visits()
    assert dpsynth("budget", "grant", "visits", "1", "--unit", "pid").code == 0
    assert dpsynth("stream", "init", "spec.yaml", "--set", "privacy.unit.per=day").code == 3
    assert dpsynth("stream", "init", "spec.yaml").code == 0


def test_nothing_public_has_an_id_a_mark_or_the_key(dpsynth, visits):
    folder = visits()
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    push(dpsynth, 1, "--publish")
    state = state_of(folder)
    for path in [*(folder / "out").iterdir(), folder / "ledger.sqlite"]:
        data = path.read_bytes()
        for secret in ("person-0", state.units["key"], state.units["used"][:40]):
            assert secret.encode() not in data, path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("mechanism.algorithm=sparse", "counts for single rows, and privacy.unit is stated"),
        ("columns.pid={key: true}", "but snapshots of a stream have no units"),
        ("privacy.unit.order=hour", "has order: hour, which only a table has"),
        ("columns.ward.of=unit", "ward is of: unit, which needs privacy.unit, and its column in columns"),
        ("privacy.unit.per=week", "where per is one of life, day"),
    ],
)
def test_what_a_stream_by_units_cannot_have_is_refused_in_words(dpsynth, visits, change, said):
    visits()
    ran = dpsynth("stream", "init", "spec.yaml", "--set", change)
    assert ran.code == 2
    assert said in ran.err.replace("\n", " ")


def test_public_arrivals_and_deletions_are_refused(dpsynth, visits):
    visits("replace_one")
    ran = dpsynth("stream", "init", "spec.yaml", "--set", "mechanism.arrivals=public")
    assert (ran.code, "how many rows a unit has is private" in ran.err.replace("\n", " ")) == (2, True)
    visits()
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    ran = dpsynth("stream", "push", "spec.yaml", "day_1.csv", "--batch-id", "gone", "--delete")
    assert (ran.code, "which of its rows were counted" in ran.err.replace("\n", " ")) == (2, True)


def test_a_table_has_no_days(dpsynth, visits):
    visits()
    words = (
        "--set",
        "mechanism={name: marginals}",
        "--set",
        "input=day_1.csv",
        "--set",
        "privacy.unit.per=day",
    )
    ran = dpsynth("check", "spec.yaml", *words)
    assert (ran.code, "has per: day, which only a stream has" in ran.err.replace("\n", " ")) == (2, True)


def test_a_stream_of_mixed_tables_by_units_pays_for_k_rows(dpsynth, visits):
    """Every price is three times that of the same stream by rows, which chooses its tables earlier; at most
    three rows of each are counted."""
    found = []
    for words in ([], ["--set", "privacy.unit=null", "--set", "name=rows", "--set", "output=out/rows.csv"]):
        folder = visits()
        words += ["--set", "mechanism.algorithm=joint"]
        assert dpsynth("stream", "init", "spec.yaml", *words).code == 0
        for day in (1, 2):
            push(dpsynth, day, "--publish", *words)
        name = "rows" if "name=rows" in words else "visits"
        assert dpsynth("verify", f"out/{name}.audit.json").code == 0
        charges = json.loads((folder / f"out/{name}.audit.public.json").read_text())["budget"]["charges"]
        found.append([int(line["sensitivity"]["value"]) for line in charges])
    by_units, by_rows = found
    assert len(by_units) >= 2
    assert by_units == [3 * value for value in by_rows[: len(by_units)]]
    rows = [
        line.split(",")[0] for day in (1, 2) for line in (folder / f"day_{day}.csv").read_text().split()[1:]
    ]
    assert state_of(folder).events == np.minimum(np.unique(rows, return_counts=True)[1], 3).sum()
