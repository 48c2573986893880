"""A release by groups from end to end: what it says, what the ledger holds, what is refused."""

from __future__ import annotations

import json

import jsonschema
import pyarrow.csv
import pytest

from dpsynth_cli.spec.spec import from_document, load_spec
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.ledger.policy import who
from tests.conftest import ROOT

GROUPS = "guarantee: groups, group_size: 10"


@pytest.fixture
def groups(people, tmp_path):
    """A spec of a release by groups; `more` goes into its mechanism, `privacy` is instead of its privacy."""

    def write(more: str = "", privacy: str = "", rows: int = 300):
        spec = people("microaggregation", more=f"{GROUPS}, {more}".rstrip(", "), rows=rows)
        lines = spec.read_text().splitlines()
        kept = [privacy if line.startswith("privacy:") else line for line in lines]
        spec.write_text("\n".join(line for line in kept if line) + "\n")
        return spec

    return write


def documents(tmp_path):
    return [json.loads((tmp_path / f"out/people.audit{kind}.json").read_text()) for kind in (".public", "")]


@pytest.mark.parametrize("output", ["centroids", "bootstrap"])
@pytest.mark.parametrize("partition", ["bisection", "net"])
def test_it_says_that_it_is_not_differentially_private_and_never_an_epsilon(
    dpsynth, groups, tmp_path, output, partition
):
    spec = groups(f"output: {output}, partition: {partition}")
    assert "not differentially private" in " ".join(dpsynth("check", spec).out.split())
    ran = dpsynth("release", spec, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["guarantee"]["model"] == "microaggregation"
    public, steward = documents(tmp_path)
    schema = json.loads((ROOT / "configs/audit.schema.json").read_text())
    for audit in (public, steward):
        jsonschema.validate(audit, schema)
        assert audit["guarantee"]["group_size"] == 10
        assert "not differentially private" in audit["guarantee"]["statement"]
        assert "epsilon" not in json.dumps(audit)
    assert "groups" not in public
    assert "people.csv" not in json.dumps({**public, "output": None, "spec": None})
    assert steward["groups"]["smallest"] >= 10
    assert set(steward["groups"]["homogeneous"]) == {"group"}
    table = pyarrow.csv.read_csv(tmp_path / "out/people.csv")
    assert table.num_rows == 300
    assert set(table["group"].to_pylist()) <= {"a", "b", "c,d"}
    assert not (tmp_path / "out/people.transcript.arrow").exists()
    said = dpsynth("verify", "out/people.audit.public.json")
    assert said.code == 0, said.err
    assert "not differentially private" in said.out


def test_a_schema_that_takes_it_refuses_an_epsilon_beside_it(dpsynth, groups, tmp_path):
    assert dpsynth("release", groups()).code == 0
    public, _ = documents(tmp_path)
    schema = json.loads((ROOT / "configs/audit.schema.json").read_text())
    for key, value in (("epsilon", "1"), ("group_size", 1)):
        wrong = public | {"guarantee": public["guarantee"] | {key: value}}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_the_ledger_records_it_as_unbounded(dpsynth, groups, tmp_path):
    assert dpsynth("release", groups()).code == 0
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert [entry.kind for entry in ledger.log()] == ["reserve", "drawn", "commit"]
    assert ledger.log()[0].payload == {"name": "people", "currency": "unbounded"} | {"by": who()}
    assert ledger.balance("people").unbounded == 1
    assert ledger.verify() == []


def test_a_budget_refuses_it_unless_it_allows_it_in_words(dpsynth, groups, tmp_path):
    spec = groups()
    assert dpsynth("budget", "grant", "people", "1").code == 0
    ran = dpsynth("release", spec)
    assert ran.code == 3
    assert "no differential privacy, and people has a budget that does not allow that" in ran.err
    assert not (tmp_path / "out/people.csv").exists()
    assert dpsynth("budget", "grant", "people", "1", "--allow-groups").code == 0
    assert dpsynth("release", spec).code == 0
    public, steward = documents(tmp_path)
    assert public["budget"] == {"currency": "unbounded", "ledger": public["budget"]["ledger"]}
    assert "ledger" not in public
    assert steward["ledger"] == {"confidential": True, "entry": 3, "remaining": "2"}
    assert dpsynth("verify", "out/people.audit.json").code == 0


@pytest.mark.parametrize(("privacy", "key"), [
    ("privacy: {epsilon: 1.0}", "privacy.epsilon"),
    ("privacy: {delta: 1e-9}", "privacy.delta"),
    ("privacy: {neighbours: add_remove}", "privacy.neighbours"),
    ("rows_hint: 300", "rows_hint"),
    ("sampling: {seed: 3}", "sampling.seed"),
])  # fmt: skip
def test_what_would_promise_privacy_is_refused(dpsynth, groups, privacy, key):
    ran = dpsynth("check", groups(privacy=privacy))
    assert ran.code == 2
    said = f"{key} is stated, but a release by groups is not differentially private; leave it out"
    assert said in " ".join(ran.err.split())


@pytest.mark.parametrize(("more", "said"), [
    ("group_size: 1", "group_size is 1; it must be a whole number from 2 to 1000000"),
    ("split: {gram: 1}", "mechanism.split is stated"),
    ("strata: group", "guarantee: groups takes no strata"),
    ("parameters: paper", "parameters: paper is of the paper's net: state mechanism.partition: net"),
])  # fmt: skip
def test_bad_parameters_are_refused(dpsynth, groups, more, said):
    spec = groups()
    text = spec.read_text()
    changed = (
        text.replace("group_size: 10", more) if "group_size" in more else text.replace("10}", f"10, {more}}}")
    )
    spec.write_text(changed)
    ran = dpsynth("check", spec)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())


def test_rows_are_for_drawn_ones_and_there_is_nothing_to_resume(dpsynth, groups, tmp_path):
    ran = dpsynth("release", groups(), "--rows", "7")
    assert ran.code == 2
    assert "output: centroids gives as many rows as the input has" in ran.err
    assert dpsynth("release", groups(), "--resume").code == 2
    assert not (tmp_path / "ledger.sqlite").exists()
    assert dpsynth("release", groups("output: bootstrap"), "--rows", "7", "--json").json["rows"] == 7


def test_few_rows(dpsynth, groups, tmp_path):
    ran = dpsynth("release", groups(rows=9))
    assert ran.code == 2
    assert "the input has fewer rows than one group needs" in ran.err
    assert "The ledger keeps this use of people" in ran.err
    assert dpsynth("release", groups(rows=0)).code == 0
    assert (tmp_path / "out/people.csv").read_text().splitlines() == ["age,score,group"]


def test_verify_finds_what_was_changed(dpsynth, groups, tmp_path):
    assert dpsynth("release", groups()).code == 0
    path = tmp_path / "out/people.audit.public.json"
    whole = path.read_text()
    for old, new in (
        ('"group_size": 10', '"group_size": 50'),
        ("is not diff", "is diff"),
        ('"rows": 300', '"rows": 3'),
    ):
        assert old in whole
        path.write_text(whole.replace(old, new, 1))
        assert dpsynth("verify", path).code == 4
    path.write_text(whole)
    table = tmp_path / "out/people.csv"
    table.write_text(table.read_text().replace("a", "b", 5))
    assert dpsynth("verify", path).code == 4


def test_an_older_transcript_of_the_same_name_does_not_stay_beside_it(dpsynth, people, groups, tmp_path):
    assert dpsynth("release", people()).code == 0
    assert (tmp_path / "out/people.transcript.arrow").exists()
    assert dpsynth("release", groups(), "--replace").code == 0
    assert not (tmp_path / "out/people.transcript.arrow").exists()
    (kept,) = (tmp_path / "out").glob("people.2*/people.audit.json")
    assert dpsynth("verify", kept).code == 0


def test_the_effective_spec_gives_the_same_spec(groups):
    spec = load_spec(str(groups("output: bootstrap")))
    assert spec.privacy.epsilon is None
    assert "epsilon" not in json.dumps(spec.effective)
    assert from_document(json.loads(json.dumps(spec.effective))) == spec


def test_a_page_of_it_says_so_and_the_registry_has_no_place_for_it(groups, dpsynth, tmp_path):
    assert dpsynth("release", groups("output: bootstrap")).code == 0
    for audit, page in (
        ("people.audit.json", "people.report.html"),
        ("people.audit.public.json", "people.report.public.html"),
    ):
        ran = dpsynth("report", f"out/{audit}")
        assert ran.code == 0, ran.err
        text = (tmp_path / "out" / page).read_text()
        assert "This release is not differentially private" in text
        assert "epsilon" not in text
    ran = dpsynth("record", "out/people.audit.json")
    assert ran.code == 2
    assert "not differentially private: the registry has no place for it." in ran.err
    assert not list((tmp_path / "out").glob("*.registry.yaml"))


CONVEX = """
dpsynth: 1
name: shifts
input: shifts.csv
output: out/shifts.csv
mechanism:
  {name: microaggregation, guarantee: groups, group_size: 5, output: OUTPUT,
   convex: [start <= end, "norm(start - 50, end - 50) <= 9"]}
columns:
  start: {type: integer, bounds: [0, 100]}
  end: {type: integer, bounds: [0, 100]}
"""


@pytest.mark.parametrize("output", ["centroids", "bootstrap"])
def test_constraints_hold_in_groups_too_and_equal_rows_stay_equal(dpsynth, tmp_path, output):
    lines = ["start,end", *(f"{60 + i % 7},{40 + i % 11}" for i in range(200))]  # every row breaks it
    (tmp_path / "shifts.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "spec.yaml").write_text(CONVEX.replace("OUTPUT", output))
    assert dpsynth("release", "spec.yaml", "-q").code == 0
    made = pyarrow.csv.read_csv(tmp_path / "out/shifts.csv").to_pandas()
    assert len(made) == 200
    assert (made.start <= made.end).all()
    assert ((made.start - 50) ** 2 + (made.end - 50) ** 2 <= 81).all()
    if output == "centroids":
        assert made.groupby(["start", "end"]).size().min() >= 5
    audit = json.loads((tmp_path / "out/shifts.audit.public.json").read_text())
    assert "Rows that broke a declared constraint were then moved" in audit["guarantee"]["statement"]
