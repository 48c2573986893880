"""Releases whose mechanism asks a misfit: recorded in full, replayed, predicted, audited, within bounds."""

from __future__ import annotations

import hashlib
import json
import time
import tracemalloc
from contextlib import closing
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import dpsynth_cli.release.predict.imagine as imagined
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evidence import empirical, neighbours
from dpsynth_cli.evidence.empirical import audit
from dpsynth_cli.hashing import canonical, sha256
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.question_json import as_json
from dpsynth_cli.questions import Answer, Bins, Cells, Gram, Halves, Misfit, Question
from dpsynth_cli.release.predict.imagine import imagine
from dpsynth_cli.release.predict.predict import predict
from dpsynth_cli.release.record.transcript import PartialTranscript, Transcript, about, load
from dpsynth_cli.spec.spec import from_document
from dpsynth_cli.trusted.core import prices
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.core.sensitivity import Sensitivity
from dpsynth_cli.trusted.sums.tally import Tally
from tests.whole.misfits import asking_misfit

RELATIONS = ("add_remove", "replace_one")


@pytest.fixture
def marginals(monkeypatch):
    """`marginals`, but it asks a misfit as well."""
    asks = asking_misfit(mechanisms()["marginals"])
    monkeypatch.setitem(mechanisms(), "marginals", asks)
    return asks


# --- the release ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("strata", ["", "strata: group"])
def test_it_is_charged_recorded_and_replayed(dpsynth, people, tmp_path, marginals, neighbours, delta, strata):
    people("marginals", "1.0", neighbours, delta, strata)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    public = json.loads((tmp_path / "out/people.audit.public.json").read_text())
    line = public["budget"]["charges"][-1]
    blocks = 3 if strata else 1
    assert (line["step"], line["question"], line["cells"]) == ("fit", "Misfit", 6 * blocks)
    assert line["columns"] == ["age", "group", "score"]
    rows = 1 if neighbours == "add_remove" else 2
    assert line["sensitivity"] == (
        {"norm": "L1", "value": str(6 * rows)}
        if delta is None
        else {"norm": "L2 squared", "value": str(6 * rows**2)}
    )
    question, answer = load(tmp_path / "out/people.transcript.arrow")[0].answers[-1]
    asked = question["statistic"]
    assert [len(own) for own in asked["expected"]] == [6] * blocks
    assert [len(table) for table in asked["expected"][0]] == [4, 2, 2, 8, 8, 4]
    assert answer.lengths == (6,) * blocks
    (tmp_path / "people.csv").unlink()
    assert dpsynth("verify", "out/people.audit.public.json").code == 0


def test_other_expected_counts_in_a_transcript_are_found(dpsynth, people, tmp_path, marginals):
    people()
    assert dpsynth("release", "spec.yaml").code == 0
    path, report = tmp_path / "out/people.transcript.arrow", tmp_path / "out/people.audit.public.json"
    transcript, digest = load(path)
    question, answer = transcript.answers[-1]
    question["statistic"]["expected"][0][0][0] += 1
    edited = Transcript(transcript.header, (*transcript.answers[:-1], (question, answer))).as_bytes()
    path.write_bytes(edited)
    report.write_text(report.read_text().replace(digest, sha256(edited)))
    ran = dpsynth("verify", report)
    assert (ran.code, "the recorded answers do not fit what the mechanism asks" in ran.err) == (4, True)


def test_a_release_that_is_cut_off_asks_no_misfit_twice(dpsynth, people, tmp_path, marginals, monkeypatch):
    people()
    record, given = PartialTranscript.record, []

    def stopped(self, question, answer):
        record(self, question, answer)
        if isinstance(question.statistic, Misfit):
            given.append(answer.values.tolist())
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PartialTranscript, "record", stopped)
        assert dpsynth("release", "spec.yaml").code == 130
    ran = dpsynth("release", "spec.yaml", "--resume")
    assert ran.code == 0, ran.err
    after = load(tmp_path / "out/people.transcript.arrow")[0].answers[-1][1].values.tolist()
    assert [after] == given


# --- the transcript ------------------------------------------------------------------------------------


def large(integers: int = 10**6) -> tuple[Question, Domain]:
    """So many expected counts, in tables of 4,000 cells."""
    omega = Domain(tuple(Column(name, "integer", lower=0, upper=999) for name in "ab"))
    pair = Cells((Bins("a", (*range(0, 1000, 25), 1000)), Bins("b", (*range(0, 1000, 10), 1000))))
    tables = (pair,) * (integers // 4000)
    found = np.random.default_rng(0).integers(0, 10**4, (len(tables), 4000)).tolist()
    return Question("fit", Misfit(tables, (tuple(map(tuple, found)),)), Fraction(1)), omega


def test_a_million_expected_counts_are_soon_priced_written_and_read(tmp_path):
    question, omega = large()
    start = time.process_time()
    charge = charge_for(question, omega, Accountant.pure(Fraction(1)))
    partial = PartialTranscript.create(tmp_path / "p", {"dpsynth_transcript": 1})
    answer = Answer(np.arange(250), charge.lengths, charge.price.noise, charge.price.sd)
    partial.record(question, answer)
    (tmp_path / "t").write_bytes(partial.transcript().as_bytes())
    ((again, _),) = load(tmp_path / "t")[0].answers
    assert again == charge.asked == as_json(question)
    assert time.process_time() - start < 5  # half a second where it was measured
    partial.close()
    text = len(canonical(again["statistic"]["expected"]))
    assert text < 5 * 10**6  # four digits and a comma
    assert (tmp_path / "p").stat().st_size < 1.2 * text
    assert (tmp_path / "t").stat().st_size < 2.4 * text  # Arrow has a file's words at both of its ends
    with closing(PartialTranscript.reopen(tmp_path / "p")) as reopened:
        assert reopened.answers[0][0] == again


def test_the_digest_of_answers_is_that_of_all_of_them_in_order(tmp_path):
    """It is kept from answer to answer: a million integers are hashed once."""
    partial = PartialTranscript.create(tmp_path / "p", {"dpsynth_transcript": 1})
    question, _ = large(4000)
    whole, seen = hashlib.sha256(), []
    seen.append(whole.hexdigest())
    for number in range(4):
        answer = Answer(np.array([number]), (1,), "discrete_laplace", 1.0)
        partial.record(question, answer)
        whole.update(canonical(about(as_json(question), answer)) + np.int64(number).tobytes())
        seen.append(whole.hexdigest())
        if number == 1:
            assert partial.digest(9) == seen[2]  # no more than there are
    for count in (4, 2, 0, 3, 1, 9):
        assert partial.digest(count) == seen[min(count, 4)]
    partial.close()


# --- what is said before any data is read --------------------------------------------------------------

COLUMNS = {name: {"type": "integer", "bounds": [0, 15]} for name in "ab"}


def a_spec():
    return from_document(
        {"dpsynth": 1, "name": "t", "output": "-", "privacy": {"epsilon": "10"},
         "mechanism": {"name": "marginals"}, "columns": COLUMNS}
    )  # fmt: skip


@pytest.mark.parametrize("rows", [1000, 100_000, 30_000_000])
def test_an_imagined_misfit_is_of_as_many_rows_as_are_imagined(marginals, rows):
    """The even table is near a uniform one, and not as far away as it has fewer rows."""
    found, _ = imagine(a_spec(), rows, imagined.references(a_spec(), rows)["even"])
    (note,) = [note for note in found.model.notes if note.startswith("misfit")]
    far = np.array(json.loads(note.removeprefix("misfit ")))
    assert np.abs(far).max() < 0.1 * rows + 50
    assert [type(charge.question.statistic) for charge in found.bill][-1] is Misfit


def test_memory_is_predicted_by_the_tables(monkeypatch):
    spec = a_spec()
    tables = (Cells((Halves("a", 8), Halves("b", 8))),) * 20
    asked = Misfit(tables, (((0,) * 2**16,) * 20,))
    found, made = imagine(spec, 1000, imagined.references(spec, 1000)["even"])
    monkeypatch.setattr("dpsynth_cli.release.predict.predict.imagine", lambda *words: (found, made))
    before = predict(spec, 1000, runs=1)[0].bytes
    question = Question("fit", asked, Fraction(1))
    found.bill.append(charge_for(question, spec.domain, Accountant.pure(Fraction(1))))
    assert predict(spec, 1000, runs=1)[0].bytes - before == pytest.approx(8 * 20 * 2**16 * 6, rel=0.01)


# --- evidence ------------------------------------------------------------------------------------------


@pytest.fixture(params=[1])
def one_pair(request, monkeypatch):
    """Only the pair of this number is tried, and few runs before."""
    monkeypatch.setattr(empirical, "LEAST_PILOT", 30)
    every, number = neighbours.pairs, request.param
    monkeypatch.setattr(empirical, "pairs", lambda *which: every(*which)[number : number + 1])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("one_pair", [0, 1, 3], indirect=True)
def test_an_audit_refutes_no_misfit(one_pair, marginals, relation):
    assert audit(marginals, relation, Fraction(1), None, 250, 1 - 1e-7).holds


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("one_pair", [0], indirect=True)
def test_an_audit_sees_a_large_claim(one_pair, marginals, relation):
    assert audit(marginals, relation, Fraction(8), None, 200, 0.99).audited > 1


def test_an_audit_finds_a_misfit_that_is_priced_too_low(one_pair, marginals, monkeypatch):
    right = prices.sensitivity

    def low(question, omega):
        found = right(question, omega)
        return Sensitivity(1, 1) if isinstance(question.statistic, Misfit) else found

    monkeypatch.setattr(prices, "sensitivity", low)
    found = audit(marginals, "replace_one", Fraction(1), None, 2500, 0.999)
    assert not found.holds


# --- time and memory -----------------------------------------------------------------------------------


def pairs_of(columns: int, cells: int, rows: int) -> tuple[Domain, dict[str, np.ndarray], tuple[Bins, ...]]:
    omega = Domain(tuple(Column(f"c{i}", "integer", lower=0, upper=255) for i in range(columns)))
    rng = np.random.default_rng(0)
    codes = {column.name: rng.integers(256, size=rows).astype(np.int32) for column in omega}
    edges = tuple(256 * i // cells for i in range(cells + 1))
    return omega, codes, tuple(Bins(column.name, edges) for column in omega)


def seconds(question: Question, omega: Domain, codes: dict[str, np.ndarray], batch: int) -> float:
    rows, best = len(next(iter(codes.values()))), np.inf
    for _ in range(3):
        start = time.process_time()
        tally = Tally([question], omega)
        for at in range(0, rows, batch):
            tally.add({name: u[at : at + batch] for name, u in codes.items()}, min(batch, rows - at))
        tally.sums()
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize(("columns", "cells"), [(15, 16), (15, 4)])
def test_all_pairs_cost_little_more_than_their_gram(columns, cells):
    omega, codes, axes = pairs_of(columns, cells, 2**18)
    tables = tuple(Cells(pair) for pair in combinations(axes, 2))
    far = Question("fit", Misfit(tables, (((7,) * cells**2,) * len(tables),)), Fraction(1))
    gram = Question("gram", Gram(axes), Fraction(1))
    # 1.02 times where it was measured.
    assert seconds(far, omega, codes, 2**17) < 2 * seconds(gram, omega, codes, 2**17) + 0.02


def test_memory_is_bounded_by_the_cells():
    omega, codes, axes = pairs_of(12, 16, 2**14)
    tables = tuple(Cells(some) for ways in (2, 3) for some in combinations(axes, ways))
    cells = sum(16 ** len(table.axes) for table in tables)
    question = Question(
        "fit", Misfit(tables, (tuple((0,) * 16 ** len(t.axes) for t in tables),)), Fraction(1)
    )
    tracemalloc.start()
    tally = Tally([question], omega)
    for _ in range(3):
        tally.add(codes, 2**14)
    adding = tracemalloc.get_traced_memory()[1]
    tally.sums()
    whole = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert adding < 8 * cells + 2**22  # the tables, and a batch's numbers of cells
    assert whole < 5 * 8 * cells + 2**22


def test_a_table_of_more_cells_than_rows_takes_no_room_beside_its_own():
    omega, codes, _ = pairs_of(2, 16, 16)
    question = Question("fit", Misfit((Cells((Halves("c0", 11), Halves("c1", 11))),), ()), Fraction(1))
    tracemalloc.start()
    tally = Tally([question], omega)
    tally.add(codes, 16)
    adding = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert adding < 8 * 2**22 + 2**20
    assert tally.partial()[1][0].sum() == 16
