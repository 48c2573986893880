"""Releases of parents and children: files that belong together, and no more moves than was paid for."""

from __future__ import annotations

import base64
import csv
import json
import secrets
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import jsonschema
import numpy as np
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from dpsynth_cli.evidence.families import transcript_of_families
from dpsynth_cli.evidence.likelihood import loss
from dpsynth_cli.evidence.transcripts import proved
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.record.journal import Journal
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.spec.spec import load_spec
from dpsynth_cli.trusted.core import prices
from dpsynth_cli.trusted.core.sensitivity import sensitivity
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.rows import joined_rows
from dpsynth_cli.trusted.rows.unit_marks import Units
from dpsynth_cli.trusted.sums.table_passes import TablePasses
from tests.conftest import ROOT

SPEC = """
dpsynth: 1
name: census
privacy: {{epsilon: {epsilon}, neighbours: {neighbours}{delta}}}
mechanism: joint
evaluate: {{metrics: {metrics}}}
tables:
  homes:
    input: homes.csv
    output: out/homes.csv
    key: home
    columns:
      region: {{type: nominal, categories: [north, south]}}
      rooms: {{type: integer, bounds: [1, 9]}}
  people:
    input: people.csv
    output: out/people.csv
    parent: homes
    foreign_key: home
    rows: 3
    order: [role, -age]
    columns:
      role: {{type: ordinal, categories: [head, spouse, child]}}
      age: {{type: integer, bounds: [0, 99]}}
"""


@pytest.fixture
def census(tmp_path):
    """Writes homes.csv and people.csv, and a spec."""

    def write(n=60, epsilon=4, neighbours="add_remove", delta="", metrics="none"):
        rng = np.random.default_rng(5)
        homes, people = ["home,region,rooms"], ["home,role,age"]
        for home in range(n):
            region = rng.integers(2)
            homes.append(f"h-{home:04d},{('north', 'south')[region]},{rng.integers(1, 10)}")
            age = rng.integers(25, 90)
            people.append(f"h-{home:04d},head,{age}")
            if rng.random() < 0.7 - 0.4 * region:
                people.append(f"h-{home:04d},spouse,{min(99, age + 1)}")
            people += [f"h-{home:04d},child,{age - 25}" for _ in range(rng.integers(0, 3))]
        (tmp_path / "homes.csv").write_text("\n".join([*homes, ""]))
        (tmp_path / "people.csv").write_text("\n".join([*people, ""]))
        said = f", delta: {delta}" if delta else ""
        words = {"epsilon": epsilon, "neighbours": neighbours, "delta": said, "metrics": metrics}
        (tmp_path / "spec.yaml").write_text(SPEC.format(**words))
        return tmp_path

    return write


def rows_of(path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_every_child_names_a_parent_and_none_has_more_than_were_kept(dpsynth, census, tmp_path):
    census(1500, 60, delta="1e-6", metrics="quick")
    ran = dpsynth("release", "spec.yaml", "--json")
    assert ran.code == 0, ran.err
    homes, people = rows_of(tmp_path / "out/homes.csv"), rows_of(tmp_path / "out/people.csv")
    assert [home["home"] for home in homes] == [str(n + 1) for n in range(len(homes))]
    whose = Counter(person["home"] for person in people)
    assert set(whose) <= {home["home"] for home in homes}
    assert max(whose.values()) <= 3
    assert len(homes) == ran.json["rows"]
    # Each first one is a head and older than the children; couples are of one age.
    first, couples, roles = 0, [], ["head", "spouse", "child"]
    for one, other in pairwise(people):
        if one["home"] == other["home"] and (one["role"], other["role"]) == ("head", "spouse"):
            couples.append(abs(int(one["age"]) - int(other["age"])))
        first += one["home"] == other["home"] and roles.index(one["role"]) > roles.index(other["role"])
    assert first < 0.1 * len(people)
    assert np.median(couples) < 6  # really 1; of independent ages 22
    audit = json.loads((tmp_path / "out/homes.audit.json").read_text())
    jsonschema.validate(audit, json.loads((ROOT / "configs/audit.schema.json").read_text()))
    public = json.loads((tmp_path / "out/homes.audit.public.json").read_text())
    jsonschema.validate(public, json.loads((ROOT / "configs/audit.schema.json").read_text()))
    assert public["tables"][0]["output"]["rows"] == len(people)
    assert sum(Fraction(line["cost"]) for line in public["budget"]["charges"]) <= Fraction(
        public["budget"]["total"]
    )
    assert {line["table"] for line in public["budget"]["charges"]} == {"homes", "people"}
    assert audit["utility"]["tables"]["people"]["verdict"]
    assert "h-0" not in json.dumps(audit)


def test_children_of_a_parent_are_released_in_their_order(dpsynth, census, tmp_path):
    census(200)
    assert dpsynth("release", "spec.yaml").code == 0
    rank = {"head": 0, "spouse": 1, "child": 2}
    rows = [
        (int(row["home"]), rank[row["role"]], -int(row["age"]))
        for row in rows_of(tmp_path / "out/people.csv")
    ]
    assert len(rows) > 200
    assert rows == sorted(rows)
    assert dpsynth("verify", "out/homes.audit.json").code == 0


def test_cells_of_every_table_that_are_not_as_declared_are_told(dpsynth, census, tmp_path):
    census()
    people = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "people.csv").write_text("\n".join([people[0], *(f"{row}x" for row in people[1:]), ""]))
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0
    assert "confidential, for the steward only: much of the data is not as declared." in ran.err
    assert "  people: column 'age': 100 % of cells" in ran.err
    assert "homes: column" not in ran.err
    homes = (tmp_path / "homes.csv").read_text().splitlines()
    (tmp_path / "homes.csv").write_text("\n".join([homes[0], *(f"{row}x" for row in homes[1:]), ""]))
    ran = dpsynth("release", "spec.yaml", "--replace", "--again")
    assert "  homes: column 'rooms': 100 % of cells" in ran.err


def test_verify_rebuilds_all_files_and_sees_a_changed_child(dpsynth, census, tmp_path):
    census()
    assert dpsynth("release", "spec.yaml").code == 0
    ran = dpsynth("verify", "out/homes.audit.public.json")
    assert ran.code == 0
    assert "people, the synthetic file: rebuilt from the transcript, the same bytes" in ran.out
    assert dpsynth("key", "init", "steward").code == 0
    assert dpsynth("key", "sign", "out/homes.audit.json", "--key", "steward").code == 0
    signed = (tmp_path / "out/homes.intoto.jsonl").read_text()
    payload = json.loads(base64.b64decode(json.loads(signed)["payload"]))
    assert "people.csv" in {one["name"] for one in payload["subject"]}
    path = tmp_path / "out/people.csv"
    path.write_text(path.read_text().replace("head", "child", 1))
    assert dpsynth("verify", "out/homes.audit.public.json").code == 4
    audit = tmp_path / "out/homes.audit.public.json"
    document = json.loads(audit.read_text())
    document["tables"][0]["rows_of_a_parent"] = 9
    audit.write_text(json.dumps(document))
    assert dpsynth("release", "spec.yaml", "--replace").code == 0
    kept = next((tmp_path / "out").glob("homes.*/people.csv"))
    assert "home,role,age" in kept.read_text()


def test_one_charge_one_transcript_and_a_resumed_release_keeps_its_key(
    dpsynth, census, tmp_path, monkeypatch
):
    census()
    keys, honest, record = [], Units.of_cells, Journal.record

    def watching(self, cells, ruined=0):
        keys.append(self.key)
        return honest(self, cells, ruined)

    def dies(self, charges, answers):
        record(self, charges, answers)
        if len(self.answers) > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Units, "of_cells", watching)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "record", dies)
        assert dpsynth("release", "spec.yaml").code == 130
    assert not (tmp_path / "out/people.csv").exists()
    assert dpsynth("release", "spec.yaml", "--resume").code == 0
    assert len(set(keys)) == 1
    assert dpsynth("verify", "out/homes.audit.json").code == 0
    log = dpsynth("budget", "log", "census", "--json").json
    assert sum(line["kind"] == "reserve" for line in log["entries"]) == 1
    for path in [*(tmp_path / "out").iterdir(), tmp_path / "ledger.sqlite"]:
        data = path.read_bytes()
        assert b"h-00" not in data, path
        assert keys[0].encode() not in data, path


def test_parquet_gives_the_same_answers_as_csv_and_more_families_can_be_drawn(
    dpsynth, census, tmp_path, monkeypatch
):
    census()
    monkeypatch.setattr(secrets, "token_hex", lambda size: "ab" * size)
    first = sums_of(dpsynth, monkeypatch, tmp_path, "spec.yaml")
    for name in ("homes", "people"):
        parquet.write_table(arrow_csv.read_csv(tmp_path / f"{name}.csv"), tmp_path / f"{name}.parquet")
    text = (tmp_path / "spec.yaml").read_text()
    text = text.replace("input: homes.csv", "input: homes.parquet").replace("people.csv", "people.parquet")
    (tmp_path / "other.yaml").write_text(text)
    (tmp_path / "ledger.sqlite").unlink()
    again = sums_of(dpsynth, monkeypatch, tmp_path, "other.yaml", first)
    assert all((one == other).all() for one, other in zip(first.sums, again.sums, strict=True))
    drawn = dpsynth("sample", "out/homes.transcript.arrow", "-o", "more.csv", "-n", "500", "--json")
    assert (drawn.json["rows"], drawn.json["tables"][0]["output"]) == (500, "more.people.csv")
    whose = {person["home"] for person in rows_of(tmp_path / "more.people.csv")}
    assert whose <= {str(n + 1) for n in range(500)}
    assert "cannot go to standard output" in dpsynth("sample", "out/homes.transcript.arrow").err


class Kept:
    """What crossed the border."""

    def __init__(self) -> None:
        self.asked, self.sums, self.answers = [], [], []


def sums_of(dpsynth, monkeypatch, folder, spec, given: Kept | None = None, words: tuple = ()) -> Kept:
    """Release, and keep all exact sums with the domain they are about; with `given`, hand out its answers."""
    kept, honest = Kept(), TablePasses.sums

    def watching(self, questions):
        found = honest(self, questions)
        start = len(kept.asked)
        kept.asked += [(self._omega, question) for question in questions]
        kept.sums += found
        return found if given is None else given.answers[start : len(kept.asked)]

    with monkeypatch.context() as patched:
        patched.setattr(TablePasses, "sums", watching)
        if given is not None:
            quiet = lambda charge, *rest: np.zeros(sum(charge.lengths), dtype=np.int64)  # noqa: E731
            patched.setattr("dpsynth_cli.trusted.core.curator.noise_for", quiet)
        patched.setattr(secrets, "token_hex", lambda size: "ab" * size)
        ran = dpsynth("release", spec, "--set", "sampling.seed=7", "--replace", *words)
    assert ran.code == 0, ran.err
    stem = "out/homes.transcript.arrow"
    kept.answers = [answer.values for _, answer in load(folder / stem)[0].answers]
    return kept


def moved_too_far(first: Kept, again: Kept) -> list[str]:
    """The steps whose sums differ by more than was paid for."""
    found = []
    for (omega, question), one, other in zip(first.asked, first.sums, again.sums, strict=True):
        step, limit = np.abs(one - other).astype(object), sensitivity(question, omega)
        if step.sum() > limit.l1 or (step**2).sum() > limit.l2_squared:
            found.append(f"{omega.table} {question.step}")
    return found


FAMILY = ("new,south,9\n", "new,child,99\n" * 7)
EMPTY, OTHER = ("new,north,1\n", ""), ("new,north,1\n", "new,head,0\n")


def with_family(folder, homes: str, people: str, top: bool = False) -> None:
    """The files with one more family, at their end or at their top."""
    for name, more in (("homes", homes), ("people", people)):
        path = folder / f"{name}.csv"
        head, rest = path.read_text().split("\n", 1)
        path.write_text(f"{head}\n{more}{rest}" if top else f"{head}\n{rest}{more}")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", ["", "1e-6"])
def test_neighbours_by_a_whole_family_with_the_same_answers_release_the_same(
    dpsynth, census, tmp_path, monkeypatch, neighbours, delta
):
    census(neighbours=neighbours, delta=delta)
    with_family(tmp_path, *FAMILY)
    first = sums_of(dpsynth, monkeypatch, tmp_path, "spec.yaml")
    table = (tmp_path / "out/people.csv").read_bytes()
    moved = 0
    for other in [None, FAMILY, *([EMPTY, OTHER] if neighbours == "replace_one" else [])]:
        (tmp_path / "ledger.sqlite").unlink()
        census(neighbours=neighbours, delta=delta)
        if other:
            with_family(tmp_path, *other, top=True)
        again = sums_of(dpsynth, monkeypatch, tmp_path, "spec.yaml", first)
        assert again.asked == first.asked
        assert not moved_too_far(first, again)
        assert (tmp_path / "out/people.csv").read_bytes() == table
        moved += sum(int(np.abs(one - two).sum()) for one, two in zip(first.sums, again.sums, strict=True))
    assert moved > 0, "neighbours that move nothing show nothing"


@pytest.mark.parametrize("twin", ["no truncation", "by the order of the file", "noise for one row"])
def test_broken_twins_are_seen(dpsynth, census, tmp_path, monkeypatch, twin):
    epsilon = 1000  # so that all children are asked about
    if twin == "no truncation":
        epsilon = 4  # so that they are not
        monkeypatch.setattr(joined_rows, "_some", lambda parent, random, most: np.arange(len(parent)))
    elif twin == "by the order of the file":
        place = iter(range(10**9))
        order = lambda self, marks, number: np.array(  # noqa: E731
            [[next(place) * 7919 % 10007] * 2 for _ in marks], np.uint64
        )
        monkeypatch.setattr(Units, "order", order)
    else:
        monkeypatch.setattr("tests.whole.test_tables.sensitivity", for_one_row)
    census(120, epsilon)
    with_family(tmp_path, *FAMILY)
    first = sums_of(dpsynth, monkeypatch, tmp_path, "spec.yaml")
    (tmp_path / "ledger.sqlite").unlink()
    census(120, epsilon)
    assert moved_too_far(first, sums_of(dpsynth, monkeypatch, tmp_path, "spec.yaml", first))


def for_one_row(question, omega):
    return prices.sensitivity(question, replace(omega, unit_rows=1))


@pytest.mark.parametrize(
    ("neighbours", "delta", "count"),
    [
        ("add_remove", "", 20_000),
        ("add_remove", "1e-6", 20_000),
        pytest.param("replace_one", "", 200_000, marks=pytest.mark.slow),
        pytest.param("replace_one", "1e-6", 200_000, marks=pytest.mark.slow),
    ],
)
def test_an_audit_of_two_tables_comes_near_the_claim_and_not_above(
    census, tmp_path, neighbours, delta, count
):
    """A family of equal children comes, or takes the place of another: what all answers can tell together is
    known exactly, and fresh noise shows most of it; with probability 1e-6 it shows more than there is."""
    folders = []
    for family in (FAMILY, OTHER if neighbours == "replace_one" else ("", "")):
        census(neighbours=neighbours, delta=delta)
        with_family(tmp_path, *family)
        folders.append(tmp_path / f"files{len(folders)}")
        folders[-1].mkdir()
        for name in ("homes.csv", "people.csv"):
            (tmp_path / name).rename(folders[-1] / name)
    spec = load_spec(str(tmp_path / "spec.yaml"))
    told = transcript_of_families(spec, *folders)
    budget = accountant_of(spec)
    claim = float(2 * budget.total if delta else budget.total)  # mu squared, or epsilon
    assert 0.8 * claim <= float(loss(told)) <= claim
    shown, mu = proved(told, spec.domain, count, float(delta or 0), 1e-6, bool(delta), system_source())
    if delta:
        assert 0.5 * claim**0.5 <= mu <= claim**0.5
    else:
        assert 0.5 * claim <= shown <= claim


def test_check_and_evaluate_say_it_in_words(dpsynth, census, tmp_path):
    census(120, 20)
    with_family(tmp_path, "new,north,3\nnew,north,4\n", "new,head,30\norphan,child,3\n")
    ran = dpsynth("check", "spec.yaml", "--data", "--json", "--n", "300")
    assert ran.code == 0, ran.err
    found = ran.json
    assert set(found["prediction"]["errors"]) == {"homes", "people"}
    family = found["data"]["people"]["family"]
    assert (family["orphans"], family["duplicates"], family["parents"]) == (1, 1, 121)
    assert "a row of homes with all its rows of people" in found["guarantee"]["statement"]
    plain = dpsynth("check", "spec.yaml", "--n", "300").out
    known = ["correlated", "spiky", "zipf", "clustered"]
    quick = ran.json["prediction"]
    assert quick["generated_tables"] == known[: len(quick["generated_tables"])]
    assert quick["margin"] == {1: 4.0, 2: 2.5, 3: 1.75, 4: 1.5}[len(quick["generated_tables"])]
    words = " ".join(plain.split())  # a quick look of its own, of as many tables as there was time for
    assert "Errors of people, simulated on generated tables (correlated" in words
    assert "; ends moved out by " in words
    whole = dpsynth("check", "spec.yaml", "--json", "--n", "100", "--runs", "1").json["prediction"]
    assert (len(whole["generated_tables"]), whole["margin"]) == (4, 1.25)
    assert "people: 0 to 3 rows for each row of homes, which home names, sorted by role, -age" in " ".join(
        plain.split()
    )
    assert dpsynth("release", "spec.yaml").code == 0
    judged = dpsynth("evaluate", "spec.yaml", "out/homes.csv", "--metrics", "marginals", "--json").json
    columns = judged["tables"]["people"]["metrics"]["marginals"]["synthetic"]["tvd1"]["columns"]
    assert {"previous.age", "homes.region", "homes.number of people", "place"} <= set(columns)
    assert dpsynth("report", "out/homes.audit.json", "--output", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "Its people" in page
    assert "Tables that belong to it" in page
    assert dpsynth("record", "out/homes.audit.json").code == 0
    assert "All rows of all tables of one home" in (tmp_path / "out/census.registry.yaml").read_text()
    for asked in (
        ("query", "out/homes.transcript.arrow", "mean(rooms)"),
        ("replicates", "out/homes.transcript.arrow"),
    ):
        refused = dpsynth(*asked)
        assert (refused.code, refused.err) == (
            2,
            "Error: this release has several tables; queries and replicates are about one.\n"
            "Count in the synthetic tables; intervals of such releases are not known yet.\n",
        )


@pytest.mark.slow
def test_dask_reads_the_same_families(dpsynth, census, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    census(200)
    first = sums_of(dpsynth, monkeypatch, tmp_path, "spec.yaml")
    (tmp_path / "ledger.sqlite").unlink()
    again = sums_of(dpsynth, monkeypatch, tmp_path, "spec.yaml", first, ("--engine", "dask"))
    assert again.asked == first.asked
    assert all((one == other).all() for one, other in zip(first.sums, again.sums, strict=True))


def test_python_gets_all_tables_as_frames(census, tmp_path, monkeypatch):
    from dpsynth_cli import api

    census()
    monkeypatch.chdir(tmp_path)
    frames = api.release(api.load_spec("spec.yaml"), ledger=tmp_path / "ledger.sqlite").tables()
    assert list(frames) == ["homes", "people"]
    assert list(frames["people"].columns) == ["home", "role", "age"]
    assert set(frames["people"]["home"]) <= set(frames["homes"]["home"])


def test_no_parents_and_no_children_release_too(dpsynth, census, tmp_path):
    census()
    for name in ("homes", "people"):
        path = tmp_path / f"{name}.csv"
        path.write_text(path.read_text().split("\n", 1)[0] + "\n")
        assert dpsynth("release", "spec.yaml", "--replace").code == 0
        assert dpsynth("verify", "out/homes.audit.json").code == 0
        census() if name == "homes" else None
