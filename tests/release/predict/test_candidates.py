"""Mechanisms side by side on the same public tables."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import no_progress
from dpsynth_cli.release.predict.candidates import (
    Candidate,
    better,
    candidates,
    others,
    recommended,
)
from dpsynth_cli.release.predict.predict import predict, ranges
from dpsynth_cli.spec.spec import from_document
from tests.release.predict.test_predict import LINE, TEN, spec_of


def compared(spec, rows, table=None, limit=60.0):
    own = Candidate.of(spec, predict(spec, rows, table)[0])
    return others(spec, rows, table, 1, limit, no_progress, own, candidates(spec)), own


def test_candidates_are_the_private_mechanisms_that_take_the_table():
    found = candidates(spec_of("psmm", TEN))
    assert next(iter(found)) == "psmm"
    assert {"joint", "marginals", "factor", "lowdim", "microaggregation"} <= set(found)
    assert not {"pmm", "online"} & set(found)  # too many columns, and a stream
    assert "pmm" in candidates(spec_of("marginals", LINE))
    for name, spec in found.items():
        assert spec.mechanism.name == name
        assert spec.domain == found["psmm"].domain
        assert spec.privacy.epsilon == found["psmm"].privacy.epsilon


def test_strata_stay_and_the_own_mechanism_keeps_its_parameters():
    columns = {**LINE, "k": {"type": "nominal", "categories": ["a", "b"]}}
    document = spec_of("pmm", columns).effective
    document |= {"mechanism": {"name": "pmm", "strata": "k", "transform": "copula"}}
    spec = from_document(document)
    found = candidates(spec)
    assert found["pmm"].params == spec.params
    assert all(one.domain.strata == "k" for one in found.values())


def test_the_best_comes_first_and_is_named_where_it_is_better_by_much():
    same = np.random.default_rng(0).integers(0, 4, 4000)
    columns = {c: {"type": "nominal", "categories": list("abcd")} for c in "xy"}
    table = Table({"x": same, "y": same}, 4000)
    found, own = compared(spec_of("marginals", columns), 4000, table)
    errors = [one.errors["tvd2"].typical for one in found]
    assert errors == sorted(errors)
    best = better(found, own)
    assert best is found[0]
    assert errors[0] < 0.1 < 0.5 < own.errors["tvd2"].typical
    assert better(found, best) is None


def test_candidates_are_compared_on_the_tables_that_both_had():
    def one(name, **errors):
        tables = {table: {"tvd2": error} for table, error in errors.items()}
        return Candidate(name, ranges({t: [e] for t, e in tables.items()}), tables, 1.0, len(tables))

    own, slow = one("own", even=0.1, sparse=0.5, zipf=0.3), one("slow", zipf=0.2)
    assert slow.ratio(own) == pytest.approx(2 / 3)
    assert better([slow, own], own) is slow
    assert better([one("near", zipf=0.28), own], own) is None


def test_the_means_that_are_told_are_of_the_tables_that_both_had():
    def one(name, **errors):
        tables = {table: {"tvd2": error} for table, error in errors.items()}
        return Candidate(name, ranges({t: [e] for t, e in tables.items()}), tables, 1.0, len(tables))

    own, other = one("own", even=0.1, sparse=0.5, zipf=0.3), one("other", zipf=0.2, sparse=0.1, spiky=0.9)
    said = other.compared(own)
    assert said == {
        "by": "tvd2",
        "shared_tables": 2,
        "mean": pytest.approx(0.15),
        "own_mean": pytest.approx(0.4),
    }


def test_what_is_recommended_is_what_auto_would_take_and_nothing_in_its_place():
    assert list(recommended(spec_of("factor", TEN))) == ["joint"]
    assert list(recommended(spec_of("pmm", LINE))) == ["marginals"]
    assert recommended(spec_of("joint", TEN)) == {}
    assert recommended(spec_of("auto", TEN)) == {}


def test_a_candidate_whose_time_is_over_begins_no_further_table():
    brief, own = compared(spec_of("marginals", LINE), 500, limit=0.0)
    assert {one.tables for one in brief if one is not own} == {1}
    assert all(list(one.by_table) == ["correlated"] for one in brief if one is not own)
    whole, _ = compared(spec_of("marginals", LINE), 500)
    assert {one.tables for one in whole} == {7}


def test_check_says_what_would_do_better_and_compare_shows_all(dpsynth, tmp_path):
    columns = "".join(f"  {c}: {{type: nominal, categories: [a, b, c]}}\n" for c in "xyz")
    (tmp_path / "s.yaml").write_text(
        "dpsynth: 1\nname: t\ninput: t.csv\noutput: o.csv\nrows_hint: 5000\nprivacy: {epsilon: 2}\n"
        f"mechanism: {{name: marginals}}\ncolumns:\n{columns}"
    )
    (tmp_path / "t.csv").write_text("x,y,z\n")
    (tmp_path / "like.csv").write_text("x,y,z\n" + "a,a,a\nb,b,b\nc,c,c\n" * 500)
    shown = dpsynth("check", "s.yaml", "--like", "like.csv")
    assert shown.code == 0, shown.err
    words = " ".join(shown.out.split())
    assert "would do better on the same table: tvd2 0" in words
    assert "best first" not in words
    assert "Try: --set mechanism.name=" in words
    said = dpsynth("check", "s.yaml", "--like", "like.csv", "--compare", "--json").json
    names = [one["mechanism"] for one in said["compared"]]
    assert {"marginals", "joint", "factor", "microaggregation"} <= set(names)
    assert said["better"]["mechanism"] == names[0] != "marginals"
    ran = dpsynth("check", "s.yaml", "--compare")
    assert ran.code == 0, ran.err
    compared = " ".join(ran.out.split())
    assert "All mechanisms that take this table, on the same tables, best first" in compared
    assert "microaggregation" in compared
