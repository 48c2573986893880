"""A stream from end to end: charged once, each batch counted once, no noise drawn twice, whatever dies."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import traceback
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.release.stream import step as stream_step
from dpsynth_cli.release.stream import stream
from dpsynth_cli.spec.spec import Spec, load_spec
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.stream import state
from dpsynth_cli.trusted.stream.state import StreamState
from dpsynth_cli.trusted.stream.step import read_leaves
from tests.conftest import ROOT

EVERY_PUSH = "releases_per_doubling: 10000"
SPEC = """\
dpsynth: 1
name: visits
input: day.csv
output: out/visits.csv
{hint}privacy: {{epsilon: {epsilon}, neighbours: {neighbours}{delta}}}
mechanism: {{name: online{more}}}
columns:
  hour: {{type: continuous, bounds: [0.0, 24.0]}}
  ward: {{type: nominal, categories: [a, b, c], nullable: true}}
sampling: {{seed: 7}}
"""


@pytest.fixture
def visits(tmp_path) -> Callable[..., Path]:
    """Write a spec, and day_1.csv .. day_9.csv with some rows each; returns the spec's path."""

    def write(epsilon="1.0", neighbours="add_remove", delta=None, more="", hint=None, rows=40) -> Path:
        rng = np.random.default_rng(5)
        for day in range(1, 10):
            lines = [f"{rng.normal(9 + day / 2, 1):.3f},{rng.choice(list('abc'))}" for _ in range(rows * day)]
            (tmp_path / f"day_{day}.csv").write_text("\n".join(["hour,ward", *lines]) + "\n")
        spec = tmp_path / "spec.yaml"
        spec.write_text(
            SPEC.format(
                epsilon=epsilon,
                neighbours=neighbours,
                delta=f", delta: {delta}" if delta else "",
                more=f", {more}" if more else "",
                hint=f"rows_hint: {hint}\n" if hint else "",
            )
        )
        return spec

    return write


def pushed(dpsynth, day: int, *more: object):
    ran = dpsynth(
        "stream", "push", "spec.yaml", f"day_{day}.csv", "--batch-id", f"day {day}", "--json", *more
    )
    assert ran.code == 0, ran.err
    return ran.json


def state_of(folder: Path) -> StreamState:
    return StreamState.of_bytes((folder / "ledger.sqlite.streams/visits.state").read_bytes())


def reserves(folder: Path) -> int:
    path = folder / "ledger.sqlite"
    return sum(entry.kind == "reserve" for entry in Ledger(path).log()) if path.exists() else 0


# --- what a stream gives -------------------------------------------------------------------------------

KINDS = [
    {},
    {"delta": "1e-6"},
    {"neighbours": "replace_one"},
    {"neighbours": "replace_one", "delta": "1e-6", "more": "arrivals: public"},
    {"neighbours": "replace_one", "more": "arrivals: public"},
    {"more": "algorithm: sparse", "hint": 100},
    {"neighbours": "replace_one", "more": "algorithm: sparse", "hint": 100},
    {"neighbours": "replace_one", "more": "algorithm: sparse, arrivals: public"},
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_every_kind_of_stream_is_charged_once_and_its_snapshots_verify(dpsynth, visits, tmp_path, kind):
    visits(**kind)
    assert dpsynth("stream", "init", "spec.yaml", "--json").json["charged"] is True
    schema = json.loads((ROOT / "configs/audit.schema.json").read_text())
    totals = set()
    for day in (1, 2, 3):
        now = pushed(dpsynth, day, "--publish")
        assert now["counted"]
        audit = json.loads((tmp_path / "out/visits.audit.public.json").read_text())
        jsonschema.validate(audit, schema)
        costs = sum(Fraction(line["cost"]) for line in audit["budget"]["charges"])
        assert costs == Fraction(audit["budget"]["spent"]) == Fraction(audit["budget"]["total"])
        totals.add((costs, audit["budget"]["ledger"]["charged"]))
        assert audit["output"]["rows"] == now["snapshot"]["rows"]
        assert "All snapshots of this stream together" in audit["guarantee"]["statement"]
        for copy in ("audit", "audit.public"):
            ran = dpsynth("verify", f"out/visits.{copy}.json", "--json")
            assert ran.code == 0, ran.err
            assert "the synthetic file: rebuilt from the transcript, the same bytes" in ran.json["findings"]
            assert ran.json["findings"][-1].startswith("the ledger: an unbroken chain")
    assert len(totals) == 1
    assert reserves(tmp_path) == 1
    assert dpsynth("budget", "verify").code == 0
    exact = {"arrivals: public" in kind.get("more", ""): 40 * 6}
    assert exact.get(True, now["snapshot"]["rows"]) == now["snapshot"]["rows"]


def test_the_first_init_says_what_it_spent_and_the_second_that_it_spent_nothing(dpsynth, visits):
    visits("0.5", delta="1e-6")
    assert (
        "once for its whole life: epsilon = 0.5, delta = 1e-06." in dpsynth("stream", "init", "spec.yaml").out
    )
    again = dpsynth("stream", "init", "spec.yaml").out
    assert "it was charged before." in again
    assert "epsilon" not in again


def test_snapshots_have_every_batch_once(dpsynth, visits, tmp_path):
    """With an epsilon that makes no noise, a snapshot has exactly the rows that were pushed."""
    visits("100000")
    dpsynth("stream", "init", "spec.yaml")
    for day in range(1, 6):
        pushed(dpsynth, day)
        again = pushed(dpsynth, day, "--publish")
        assert again["counted"] is False
        assert again["snapshot"]["rows"] == 40 * day * (day + 1) // 2


def test_between_releases_the_snapshot_stays_as_it_is(dpsynth, visits, tmp_path):
    visits("100000", more="releases_per_doubling: 1")
    dpsynth("stream", "init", "spec.yaml")
    seen = [pushed(dpsynth, day, "--publish") for day in range(1, 7)]
    assert [now["released"] for now in seen] == [True, True, False, True, False, False]
    assert [now["snapshot"]["rows"] for now in seen] == [40, 120, 120, 400, 400, 400]
    assert [now["next_release"] for now in seen] == [2, 4, 4, 8, 8, 8]


def test_an_empty_batch_and_bad_rows_are_pushes_like_any_other(dpsynth, visits, tmp_path):
    visits()
    dpsynth("stream", "init", "spec.yaml")
    (tmp_path / "day_1.csv").write_text("hour,ward\n")
    (tmp_path / "day_2.csv").write_bytes(b'hour,ward\n1,2,3,4\n"x\nnan,purple\n\xff\xfe,a\n1e999,b\n')
    for day in (1, 2):
        ran = dpsynth("stream", "push", "spec.yaml", f"day_{day}.csv", "--batch-id", day, "--publish")
        assert ran.code == 0
        assert ran.err.startswith("confidential, for the steward only: ") == (day == 2)
        assert "purple" not in ran.out + ran.err
        assert dpsynth("verify", "out/visits.audit.json").code == 0


def test_what_is_public_tells_nothing_of_rows(dpsynth, visits, tmp_path):
    visits()
    dpsynth("stream", "init", "spec.yaml")
    for day in (1, 2, 3):
        now = pushed(dpsynth, day, "--publish")
        assert now["events"] is None
    state = state_of(tmp_path)
    ledger = (tmp_path / "ledger.sqlite").read_bytes()
    for name in ("visits.audit.public.json", "visits.transcript.arrow"):
        text = (tmp_path / "out" / name).read_bytes()
        for secret in (state.secret.encode(), b"day 1", b"day_1", str(tmp_path).encode()):
            assert secret not in text
            assert secret not in ledger
    for path in (tmp_path / "ledger.sqlite.streams").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "ledger.sqlite.streams").stat().st_mode) == 0o700
    # Two streams of the same rows have other commitments: nobody can confirm a guess.
    notes = [
        e.payload["commitment"] for e in Ledger(tmp_path / "ledger.sqlite").log() if "commitment" in e.payload
    ]
    assert len(set(notes)) == len(notes) == 4


def test_raw_counts_that_are_never_measured_again_are_forgotten(dpsynth, visits, tmp_path):
    """Without a delta twelve releases are measured together, and then forgotten."""
    visits(more=EVERY_PUSH)
    watched = Watched(tmp_path)
    stream.init(watched.spec, watched.ledger)
    kept = []
    for push in range(13):
        stream.push(watched.spec, watched.ledger, str(tmp_path / "day_1.csv"), str(push))
        kept.append(sum(part.rows for part in state_of(tmp_path).blocks.raw))
    assert kept == [*range(40, 480, 40), 0, 40]


def test_two_streams_of_the_same_rows_have_other_noise(dpsynth, visits, tmp_path):
    spec = visits()
    answers = []
    for name in ("one", "two"):
        text = spec.read_text().replace("name: visits", f"name: {name}")
        (tmp_path / f"{name}.yaml").write_text(text)
        dpsynth("stream", "init", f"{name}.yaml")
        dpsynth(
            "stream", "push", f"{name}.yaml", "day_5.csv", "--batch-id", 1, "--publish", "-o", f"{name}.csv"
        )
        # The trees; the one number that is the total is the same by chance once in some hundred runs.
        answers.append([a.values for _, a in load(tmp_path / f"{name}.transcript.arrow")[0].answers[1:]])
    eighths = [trees[-1].reshape(8, -1).sum(axis=1) for trees in answers]  # one may be cut deeper
    assert (eighths[0] != eighths[1]).any()


# --- refusals ------------------------------------------------------------------------------------------


def test_a_stream_is_not_released_and_a_table_is_not_streamed(dpsynth, visits, people):
    people("pmm")
    for command in ("init", "status", "publish"):
        ran = dpsynth("stream", command, "spec.yaml")
        assert (ran.code, "pmm releases a whole table" in ran.err) == (2, True)
    visits()
    for more in ((), ("--resume",)):
        ran = dpsynth("release", "spec.yaml", *more)
        assert ran.code == 2
        assert ran.err == (
            "Error: spec.yaml, line 6: online releases a stream, push by push, not a table.\n"
            "Nothing was read and nothing was spent. Start it with: dpsynth stream init SPEC. Then, for every"
            " batch: dpsynth stream push SPEC BATCH --batch-id ID --publish\n"
        )


def test_a_stream_needs_no_input_and_pays_for_no_evaluation(dpsynth, visits, tmp_path):
    spec = visits()
    spec.write_text(spec.read_text().replace("input: day.csv\n", ""))
    assert dpsynth("stream", "init", spec).code == 0
    assert dpsynth("stream", "push", spec, "day_1.csv", "--batch-id", "1", "--publish").code == 0
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    paid = tmp_path / "paid.yaml"
    paid.write_text(spec.read_text() + "evaluate: {epsilon: 0.2}\n")
    for words in (("check", paid), ("stream", "init", paid)):
        ran = dpsynth(*words)
        assert ran.code == 2
        assert "a stream has no rows to go back to for a paid evaluation." in ran.err


def test_the_record_of_a_snapshot_says_that_it_is_one_of_many(dpsynth, visits, tmp_path):
    spec = visits(neighbours="replace_one")
    assert dpsynth("stream", "init", spec).code == 0
    assert dpsynth("stream", "push", spec, "day_1.csv", "--batch-id", "1", "--publish").code == 0
    assert dpsynth("record", "out/visits.audit.json").code == 0
    said = next((tmp_path / "out").glob("*.registry.yaml")).read_text()
    assert "Many releases" in said
    assert "Dynamic" in said
    assert "The number of rows is public" not in said


@pytest.mark.parametrize("kind", [{}, {"neighbours": "replace_one"}], ids=["add_remove", "replace_one"])
def test_the_report_of_a_snapshot_speaks_of_the_stream(dpsynth, visits, tmp_path, kind):
    visits(**kind)
    dpsynth("stream", "init", "spec.yaml")
    pushed(dpsynth, 1, "--publish")
    assert dpsynth("report", "out/visits.audit.json", "--public").code == 0
    page = (tmp_path / "out/visits.report.public.html").read_text()
    assert "All snapshots of this stream together, however long it goes on" in page
    assert "see every snapshot of this stream, now and for as long as it goes on" in page
    assert "any push" in page.split("In plain words")[1].split("</p>")[0]
    assert "input table" not in page


def test_sparse_counting_refuses_a_delta(dpsynth, visits):
    visits(delta="1e-6", more="algorithm: sparse", hint=100)
    for words in (("stream", "init"), ("check",)):
        ran = dpsynth(*words, "spec.yaml")
        assert (ran.code, "sparse counting has pure epsilon only" in ran.err) == (2, True)


def test_nothing_is_charged_that_the_grant_does_not_allow(dpsynth, visits, tmp_path):
    visits()
    dpsynth("budget", "grant", "visits", "0.5")
    ran = dpsynth("stream", "init", "spec.yaml")
    assert (ran.code, "has 0.5 left" in ran.err) == (3, True)
    assert reserves(tmp_path) == 0
    dpsynth("budget", "grant", "visits", "0.5")
    assert dpsynth("stream", "init", "spec.yaml", "--json").json["charged"] is True
    assert dpsynth("stream", "init", "spec.yaml", "--json").json["charged"] is False
    assert reserves(tmp_path) == 1


@pytest.mark.parametrize("pushes", [0, 1])
def test_a_stream_that_was_aborted_cannot_go_on(dpsynth, visits, tmp_path, pushes):
    """Before the first push the charge is given back, so that going on would be free."""
    visits()
    dpsynth("budget", "grant", "visits", "1")
    dpsynth("stream", "init", "spec.yaml")
    for day in range(1, pushes + 1):
        pushed(dpsynth, day, "--publish")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.abort(state_of(tmp_path).stream_id, "by hand") is (pushes == 0)
    before = (tmp_path / "ledger.sqlite.streams/visits.state").read_bytes(), ledger.head()
    for words in (
        ("push", "spec.yaml", "day_3.csv", "--batch-id", "3", "--publish"),
        ("push", "spec.yaml", "no such file", "--batch-id", "4"),
        ("publish", "spec.yaml"),
        ("init", "spec.yaml"),
        ("status", "spec.yaml"),
    ):
        ran = dpsynth("stream", *words)
        assert ran.code == 3
        assert ran.err == (
            f"Error: the stream visits was aborted in the ledger {ledger.path}: nothing pays for it any "
            "more.\nNothing was read, published or spent. Start a stream of another name, with a budget of "
            "its own. See what was recorded: dpsynth budget log\n"
        )
    assert ((tmp_path / "ledger.sqlite.streams/visits.state").read_bytes(), ledger.head()) == before


def test_an_init_that_died_and_was_aborted_does_not_go_on_for_nothing(dpsynth, visits, tmp_path):
    visits()
    watched = Watched(tmp_path)
    init, step = watched.works()[0], 1
    while reserves(tmp_path) == 0:
        assert not in_a_child(init, dies_before_step(step))
        step += 1
    assert state_of(tmp_path).generation == 0
    watched.ledger.abort(state_of(tmp_path).stream_id, "by hand")
    ran = dpsynth("stream", "init", "spec.yaml")
    assert (ran.code, "was aborted in the ledger" in ran.err) == (3, True)


def test_an_init_that_died_while_it_made_the_ledger_can_be_run_again(dpsynth, visits, tmp_path):
    visits()
    (tmp_path / "ledger.sqlite").touch()
    for charged in (True, False):
        assert dpsynth("stream", "init", "spec.yaml", "--json").json["charged"] is charged
    assert reserves(tmp_path) == 1


def test_pushing_and_publishing_need_a_stream_and_a_release(dpsynth, visits):
    visits()
    for words in (
        ("push", "spec.yaml", "day_1.csv", "--batch-id", "1"),
        ("publish", "spec.yaml"),
        ("status", "spec.yaml"),
    ):
        ran = dpsynth("stream", *words)
        assert (ran.code, "there is no stream visits" in ran.err) == (2, True)
    dpsynth("stream", "init", "spec.yaml")
    ran = dpsynth("stream", "publish", "spec.yaml")
    assert (ran.code, "has no release yet" in ran.err) == (2, True)


def test_a_batch_that_cannot_be_read_is_not_counted(dpsynth, visits, tmp_path):
    visits("100000")
    dpsynth("stream", "init", "spec.yaml")
    (tmp_path / "wrong.csv").write_text("hour,unit\n1,a\n")
    for name, says in (("none.csv", "none.csv"), ("wrong.csv", "ward")):
        ran = dpsynth("stream", "push", "spec.yaml", name, "--batch-id", "day 1")
        assert ran.code == 5
        assert says in ran.err
        assert "The batch was not counted, and nothing more was spent." in ran.err
    assert pushed(dpsynth, 1, "--publish")["snapshot"]["rows"] == 40


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_a_push_that_is_stopped_while_it_reads_says_that_nothing_was_counted(
    dpsynth, visits, monkeypatch, stop, code
):
    visits("100000")
    dpsynth("stream", "init", "spec.yaml")

    def stopped(*words):
        raise stop

    with monkeypatch.context() as once:
        once.setattr(stream, "read_batch", stopped)
        ran = dpsynth("stream", "push", "spec.yaml", "day_1.csv", "--batch-id", "day 1")
    assert ran.code == code
    assert ran.err == (
        "Error: interrupted.\nThe batch was not counted, and nothing more was spent. "
        "Run the same command again.\n"
    )
    assert pushed(dpsynth, 1, "--publish")["snapshot"]["rows"] == 40


def test_a_stream_keeps_its_spec_but_a_snapshot_may_go_elsewhere(dpsynth, visits, tmp_path):
    visits()
    dpsynth("stream", "init", "spec.yaml")
    pushed(dpsynth, 1)
    for change in (
        "privacy.epsilon=2",
        "mechanism.releases_per_doubling=9",
        "columns.hour.bounds=[0.0, 25.0]",
    ):
        ran = dpsynth("stream", "push", "spec.yaml", "day_2.csv", "--batch-id", "2", "--set", change)
        assert ran.code == 2
        assert f"was started with another {change.split('.')[0]}" in ran.err
    ran = dpsynth("stream", "publish", "spec.yaml", "-o", "elsewhere/v.parquet", "--rows", 17, "--json")
    assert ran.json["rows"] == 17
    assert dpsynth("verify", "elsewhere/v.audit.public.json").code == 0


# --- the state's file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_a_state_has_at_most_16_bytes_for_each_cell_that_is_alive(visits, tmp_path, delta):
    """At 100 releases: cells of the tree, and those that raw counts are kept for. The ids and the errors of
    the blocks are a few kB more."""
    visits(more=EVERY_PUSH, delta=delta, rows=1000)
    spec = load_spec(str(tmp_path / "spec.yaml"))
    rows = read_leaves(
        open_scan(str(tmp_path / "day_9.csv"), spec.domain.columns, spec.csv), stream_step.stream_of(spec)
    )
    state = StreamState("0" * 32, "0" * 64, {}, 0)
    for push in range(100):
        stream_step.advance(state, spec, rows, str(push), "2026-01-01")
    alive = sum(len(part.codes) for part in state.blocks.raw)
    alive += sum(len(answer.values) for _, answer in state.answers)
    assert len(state.as_bytes()) < 16 * alive + 6000


def test_a_state_of_an_older_form_is_refused_in_words(dpsynth, visits, tmp_path, monkeypatch):
    visits()
    dpsynth("stream", "init", "spec.yaml")
    pushed(dpsynth, 1)
    path = tmp_path / "ledger.sqlite.streams/visits.state"
    known = state_of(tmp_path)
    with monkeypatch.context() as older:
        older.setattr(state, "VERSION", 2)
        path.write_bytes(known.as_bytes())
    ran = dpsynth("stream", "push", "spec.yaml", "day_2.csv", "--batch-id", "2")
    assert ran.code == 4
    assert ran.err == (
        f"Error: {path} is a state of another version of dpsynth, which measured other sums of the "
        "stream.\nNothing was read and nothing was published. Go on with the version that it was started "
        "with, or give the stream up and pay for a new one: dpsynth stream init SPEC --start-over\n"
    )
    assert dpsynth("stream", "init", "spec.yaml", "--start-over", "--json").json["charged"] is True


# --- copies of before ----------------------------------------------------------------------------------


@pytest.fixture
def running(dpsynth, visits, tmp_path):
    """A stream with two pushes, published, and a copy of everything as it was after the first."""
    visits()
    dpsynth("stream", "init", "spec.yaml")
    pushed(dpsynth, 1, "--publish")
    shutil.copytree(tmp_path, tmp_path / "before")
    pushed(dpsynth, 2, "--publish")
    return tmp_path


def refused(dpsynth) -> str:
    found = set()
    for words in (
        ("push", "spec.yaml", "day_3.csv", "--batch-id", "3"),
        ("publish", "spec.yaml"),
        ("init", "spec.yaml"),
    ):
        ran = dpsynth("stream", *words)
        if words[0] != "init":
            assert ran.code == 4, ran.err
            found.add(ran.err.split(":")[1].strip())
    return " ".join(found)


def test_an_older_state_is_refused(dpsynth, running):
    state = "ledger.sqlite.streams/visits.state"
    shutil.copy(running / "before" / state, running / state)
    assert "is not the state that the ledger" in refused(dpsynth)


def test_a_damaged_state_is_refused(dpsynth, running):
    path = running / "ledger.sqlite.streams/visits.state"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert "is not the state that the ledger" in refused(dpsynth)


def test_a_foreign_state_is_refused(dpsynth, running):
    text = (running / "spec.yaml").read_text()
    (running / "other.yaml").write_text(text.replace("name: visits", "name: other"))
    dpsynth("stream", "init", "other.yaml")
    folder = running / "ledger.sqlite.streams"
    shutil.copy(folder / "other.state", folder / "visits.state")
    ran = dpsynth("stream", "push", "spec.yaml", "day_3.csv", "--batch-id", "3")
    assert (ran.code, "was started with another name" in ran.err) == (2, True)


def test_a_state_whose_ledger_is_gone_is_refused(dpsynth, running):
    """Else an old copy could go on under a new ledger, and old blocks would get new noise."""
    (running / "ledger.sqlite").unlink()
    dpsynth("budget", "init")
    assert "is not the state that the ledger" in refused(dpsynth)
    assert reserves(running) == 0


def test_state_and_ledger_restored_together_are_refused_beside_a_newer_snapshot(dpsynth, running):
    for name in ("ledger.sqlite", "ledger.sqlite.streams/visits.state"):
        shutil.copy(running / "before" / name, running / name)
    assert "does not have the entry" in refused(dpsynth)


# --- killed at any moment ------------------------------------------------------------------------------


def in_a_child(work: Callable[[], object], prepare: Callable[[], None]) -> bool:
    """Run `work` in a child that `prepare` has set to die; whether it lived to the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        code = 1
        try:
            prepare()
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, how = os.waitpid(child, 0)
    assert how == 0 or os.WIFSIGNALED(how), "the child failed by itself"
    return how == 0


def dies_before_step(number: int) -> Callable[[], None]:
    """Kill -9 before the so-many-th thing that reaches the disk."""

    def prepare() -> None:
        left = number

        def counted(real):
            def go(*words, **more):
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*words, **more)

            return go

        for name in ("fsync", "replace", "open"):
            setattr(os, name, counted(getattr(os, name)))
        for name in ("reserve", "drawn", "note"):
            setattr(Ledger, name, counted(getattr(Ledger, name)))

    return prepare


class Watched:
    """A stream run in children; all that it publishes is compared with what it published before."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.published = folder, dict[tuple, np.ndarray]()
        self.spec: Spec = load_spec(str(folder / "spec.yaml"))
        self.ledger = Ledger(folder / "ledger.sqlite")

    def works(self) -> list[Callable[[], object]]:
        works: list[Callable[[], object]] = [lambda: stream.init(self.spec, self.ledger)]
        for day in range(1, 6):
            batch = str(self.folder / f"day_{day}.csv")
            works.append(
                lambda batch=batch, day=day: stream.push(self.spec, self.ledger, batch, f"day {day}")
            )
            works.append(lambda: stream.publish(self.spec, self.ledger))
        return works

    def look(self) -> None:
        """No noise is drawn twice for anything that was ever published."""
        path = self.folder / "out/visits.transcript.arrow"
        if not path.exists():
            return
        transcript, _ = load(path)
        release = transcript.header["stream"]["release"]
        for place, (_, answer) in enumerate(transcript.answers):
            known = self.published.setdefault((release, place), answer.values)
            assert np.array_equal(known, answer.values)


def finished(folder: Path) -> tuple[bytes, list[str], int, int]:
    """What must be as if nothing had been killed."""
    state = state_of(folder)
    return (folder / "out/visits.csv").read_bytes(), state.batches, state.events, reserves(folder)


def never_killed(folder: Path) -> tuple[bytes, list[str], int, int]:
    shutil.copytree(folder, folder / "calm")
    calm = Watched(folder / "calm")
    for work in calm.works():
        work()
    return finished(folder / "calm")


def test_killed_between_any_two_steps_every_batch_counts_once_and_no_noise_is_redrawn(visits, tmp_path):
    visits("100000")
    expected = never_killed(tmp_path)
    watched = Watched(tmp_path)
    kills = 0
    for work in watched.works()[:4]:
        step = 1
        while not in_a_child(work, dies_before_step(step)):
            step, kills = step + 1, kills + 1
            watched.look()
        watched.look()
    for work in watched.works()[4:]:
        work()
    assert kills > 40
    assert finished(tmp_path) == expected


@pytest.mark.parametrize("more", ["algorithm: blocks", "algorithm: sparse", "algorithm: joint"])
def test_a_killed_push_under_real_noise_publishes_one_noise_only(visits, tmp_path, more):
    visits("1.0", more=more, hint=100)
    watched = Watched(tmp_path)
    works = watched.works()
    works[0]()
    for push, publish in ((works[1], works[2]), (works[3], works[4])):
        for step in (2, 5, 6, 7, 8, 9, 10):
            if in_a_child(push, dies_before_step(step)):
                break
        push()
        for step in (4, 9):
            in_a_child(publish, dies_before_step(step))
            watched.look()
        publish()
        watched.look()
    assert state_of(tmp_path).pushes == 2
    assert reserves(tmp_path) == 1


@pytest.mark.slow
@pytest.mark.parametrize("more", ["algorithm: blocks", "algorithm: joint"])
def test_200_random_kills_leave_counts_as_if_never_killed(visits, tmp_path, more):
    visits("100000", more=more)
    expected = never_killed(tmp_path)
    watched, rng, kills, round_ = Watched(tmp_path), random.Random(11), 0, 0
    while kills < 200:
        round_ += 1
        for path in ("out", "ledger.sqlite.streams"):
            shutil.rmtree(tmp_path / path, ignore_errors=True)
        (tmp_path / "ledger.sqlite").unlink(missing_ok=True)
        watched.published.clear()
        for work in watched.works():
            for attempt in range(6):
                # The alarm kills like SIGKILL: nothing of the process runs after it.
                delay = rng.uniform(0.0005, 0.04 * (attempt + 1))
                if in_a_child(work, lambda delay=delay: signal.setitimer(signal.ITIMER_REAL, delay)):
                    break
                kills += 1
                watched.look()
            else:
                work()
            watched.look()
        assert finished(tmp_path) == expected, f"round {round_}"
        assert Ledger(tmp_path / "ledger.sqlite").verify() == []
