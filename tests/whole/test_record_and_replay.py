"""Neighbouring files, one record of noisy answers: all that a release does after them is the same.

In the manner of Re:cord-play (Cebere, Erb, Desfontaines, Bellet, Fitzsimons: "Privacy in Theory, Bugs in
Practice", 2026). A file is released by the command itself and its noisy answers are kept. Then a
neighbouring file is released, its rows are read and added up as ever, but in place of its own answers the
mechanism gets the kept ones. What was asked, chosen, printed and written must be the same; and the sums
before noise must differ by no more than the sensitivity that was paid for.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

import dpsynth_cli.release.table as releases
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.questions import Question
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.trusted.core import curator
from dpsynth_cli.trusted.core.sensitivity import sensitivity
from tests.whole.misfits import asking_misfit

EVERY = [name for name, one in mechanisms().items() if not getattr(one, "stream", False)]
MISFIT = "marginals, and how far from them"
ODD_ROWS = {
    "add_remove": ["-1e999,nan,\x00,x", "99,1.0,a,", "0,0,b,"],
    "replace_one": [',,"c,d"', "99,1.0,b,", "0,0,zebra,private-5,too,many"],
}


@dataclass
class Recorded:
    """What crossed the border: questions, exact sums and, in the first release, the noisy answers."""

    asked: list[Question] = field(default_factory=list)
    sums: list[np.ndarray] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)
    omega: object = None


def watched(monkeypatch, given: list[np.ndarray] | None) -> Recorded:
    """Keep all exact sums; with `given`, hand out these as answers."""
    kept, sum_over = Recorded(), releases.sum_over

    def watching(scan, omega, questions, *rest):
        sums, rows = sum_over(scan, omega, questions, *rest)
        start = len(kept.asked)
        kept.omega = omega
        kept.asked += questions
        kept.sums += sums
        return (sums if given is None else given[start : len(kept.asked)]), rows

    monkeypatch.setattr(releases, "sum_over", watching)
    if given is not None:
        monkeypatch.setattr(
            curator, "noise_for", lambda charge, *rest: np.zeros(sum(charge.lengths), dtype=np.int64)
        )
    return kept


def released(dpsynth, monkeypatch, folder: Path, given: list[np.ndarray] | None) -> tuple[Recorded, dict]:
    """Release people.csv; what crossed the border, and everything that anybody can see of it."""
    (folder / "ledger.sqlite").unlink(missing_ok=True)
    with monkeypatch.context() as patched:
        kept = watched(patched, given)
        patched.setattr(secrets, "token_hex", lambda size: "ab" * size)
        ran = dpsynth("release", "spec.yaml", "--set", "sampling.seed=7", "--replace")
    if ran.code == 2 and "takes" in ran.err:
        pytest.skip("the mechanism does not take such a table")
    assert ran.code == 0, ran.err
    told = ("confidential, for the steward only: ", "warning: The synthetic table has no rows")
    assert not ran.err or ran.err.startswith(told), ran.err
    transcript, _ = load(folder / "out/people.transcript.arrow")
    kept.answers = [answer.values for _, answer in transcript.answers]
    audit = json.loads((folder / "out/people.audit.public.json").read_text())
    for document in (audit["budget"], transcript.header):
        del document["ledger"]  # its hash has the time in it
    del audit["transcript"]["sha256"]
    shown = {
        "printed": ran.out,  # standard error is the steward's
        "table": (folder / "out/people.csv").read_bytes(),
        "audit": audit,
        "header": transcript.header,
        "asked": [
            (question, answer.lengths, answer.noise, answer.sd) for question, answer in transcript.answers
        ],
        "answers": [values.tolist() for values in kept.answers],
        "files": sorted(path.name for path in (folder / "out").iterdir()),
    }
    return kept, shown


def neighbouring(data: bytes, neighbours: str, row: str, at: int) -> bytes:
    """The file with a row more, or with one replaced."""
    lines = data.split(b"\n")
    lines[at : at + (neighbours == "replace_one")] = [row.encode()]
    return b"\n".join(lines)


@pytest.mark.parametrize("strata", ["", "strata: group"], ids=["plain", "strata"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", [*EVERY, MISFIT])
def test_neighbours_with_the_same_answers_release_the_same(
    dpsynth, people, tmp_path, monkeypatch, mechanism, neighbours, strata
):
    if mechanism == MISFIT:
        mechanism = "marginals"
        monkeypatch.setitem(mechanisms(), mechanism, asking_misfit(mechanisms()[mechanism]))
    delta = "1e-6" if strata else None
    people(mechanism, "2.0", neighbours, delta, strata, rows=60)
    first, shown = released(dpsynth, monkeypatch, tmp_path, None)
    path = tmp_path / "people.csv"
    data = path.read_bytes()
    moved = 0
    for row, at in zip(ODD_ROWS[neighbours], (1, 30, 60), strict=True):
        path.write_bytes(neighbouring(data, neighbours, row, at))
        again, seen = released(dpsynth, monkeypatch, tmp_path, first.answers)
        for what in shown:
            assert seen[what] == shown[what], what
        assert again.asked == first.asked
        for question, one, other in zip(first.asked, first.sums, again.sums, strict=True):
            step = np.abs(one - other).astype(object)
            limit = sensitivity(question, first.omega)
            assert step.sum() <= limit.l1, question.step
            if not limit.half_above:
                assert (step**2).sum() <= limit.l2_squared, question.step
            moved += int(step.sum())
    assert moved > 0, "neighbours that move nothing show nothing"


def test_a_mechanism_that_looks_past_its_answers_is_seen(dpsynth, people, tmp_path, monkeypatch):
    """The record shows what it is for: a model whose total is the true one differs on a neighbour."""
    people("marginals", rows=60)
    right, rows = releases.sum_over, []

    def counting(scan, omega, questions, *rest):
        sums, count = right(scan, omega, questions, *rest)
        rows.append(count)
        return sums, count

    honest = mechanisms()["marginals"]

    def leaky(*words):
        return replace(honest.run(*words), total=rows[-1])

    monkeypatch.setattr(releases, "sum_over", counting)
    monkeypatch.setitem(mechanisms(), "marginals", replace(honest, run=leaky))
    first, shown = released(dpsynth, monkeypatch, tmp_path, None)
    path = tmp_path / "people.csv"
    path.write_bytes(neighbouring(path.read_bytes(), "add_remove", ODD_ROWS["add_remove"][1], 1))
    _, seen = released(dpsynth, monkeypatch, tmp_path, first.answers)
    assert seen["answers"] == shown["answers"]
    assert seen["table"] != shown["table"]
