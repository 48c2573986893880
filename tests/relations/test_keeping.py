"""Rows are made to keep all rules: always all of them, and as little else changes as can be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import Model
from dpsynth_cli.relations.contradictions import keeper_of
from dpsynth_cli.relations.language import parse
from dpsynth_cli.relations.relations import Relations, Rule

START = Column("start", "integer", 0, 999)
END = Column("end", "integer", 0, 999, nullable=True)
GAP = Column("gap", "continuous", 0.0, 1.0, nullable=True)
KIND = Column("kind", "nominal", categories=("p", "q", "r"), nullable=True)
OTHER = Column("other", "integer", 0, 99)
ALL = (START, END, GAP, KIND, OTHER)


def keeper(*texts, missing_with=(), strata=None):
    relations = Relations((), tuple(Rule(text, parse(text)) for text in texts), tuple(missing_with))
    made, problems = keeper_of(relations, Domain(ALL, strata=strata))
    assert problems == []
    return made


def rows(count=3000, seed=0):
    rng = np.random.default_rng(seed)
    return {column.name: rng.integers(column.codes, size=count) for column in ALL}


def broken(own, block):
    return own.relations.broken(block, own.omega, own.relations.kept)


def kept(own, block, seed=1):
    return own.kept(block, np.random.default_rng(seed))


TEXTS = [
    "start <= end", "if kind == 'p' then gap is missing", "gap < 0.5 or start > 300", "start + end <= 1500",
    "start != end", "kind is not missing", "if start < 10 then kind == 'r'", "end % 2 == 0",
    "if end is missing then gap < 0.9", "start // 100 != 3",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6, unique=True),
    st.sampled_from([(), (("gap", "end"),), (("gap", "end"), ("kind", "end"))]),
    st.sampled_from([None, "kind"]),
    st.integers(0, 400),
)
def test_no_row_ever_breaks_a_rule(texts, missing_with, strata, count):
    if strata == "kind":
        texts = [text for text in texts if text != "kind is not missing"]
        missing_with = tuple(pair for pair in missing_with if pair[0] != "kind")
    own = keeper(*texts, missing_with=missing_with, strata=strata)
    block = rows(count)
    made = kept(own, block)
    assert not broken(own, made).any()
    assert all(len(codes) == count for codes in made.values())
    assert (made["other"] == block["other"]).all()
    if strata:
        assert (made[strata] == block[strata]).all()
    assert all((kept(own, block)[name] == made[name]).all() for name in made)  # the same again


def test_rows_that_keep_the_rules_stay_as_they_are_and_so_does_the_block_that_was_given():
    own, block = keeper("start <= 990"), rows()
    before = {name: codes.copy() for name, codes in block.items()}
    made = kept(own, block)
    fine = ~broken(own, block)
    assert 0 < (~fine).sum() < 100
    assert all((made[name][fine] == block[name][fine]).all() for name in block)
    assert all((block[name] == before[name]).all() for name in block)


def test_exchanges_keep_the_distribution_of_every_column():
    own, block = keeper("start <= end"), rows(20_000)
    block["end"] = np.minimum(999, np.random.default_rng(5).permutation(block["start"]) + 150)
    assert broken(own, block).mean() > 0.3
    made = kept(own, block)
    for name in ("start", "end"):
        there = [np.bincount(own_block[name] // 50, minlength=21) for own_block in (block, made)]
        assert np.abs(there[0] - there[1]).sum() / 2 / 20_000 < 0.05, name


def test_exchanges_keep_what_columns_have_to_do_with_each_other():
    """Most rows end soon after they start; of a fifth of them a model knew nothing."""
    own, block, rng = keeper("start <= end"), rows(20_000), np.random.default_rng(6)
    block["start"] = rng.integers(0, 900, 20_000)
    block["end"] = np.minimum(999, block["start"] + rng.exponential(20, 20_000).astype(int))
    fine = np.median(block["end"] - block["start"])
    lost = rng.random(20_000) < 0.2
    block["end"][lost] = rng.permutation(block["end"][lost])
    assert 0.05 < broken(own, block).mean() < 0.15
    made = kept(own, block)
    assert np.median(made["end"] - made["start"]) < 1.5 * fine
    for name in ("start", "end"):
        there = [np.bincount(own_block[name] // 50, minlength=21) for own_block in (block, made)]
        assert np.abs(there[0] - there[1]).sum() / 2 / 20_000 < 0.03, name


def test_what_is_missing_together_keeps_its_share_and_its_values():
    own, block = keeper(missing_with=[("gap", "end")]), rows(20_000)
    block["end"][:3000] = END.size
    block["gap"] = np.where(np.random.default_rng(3).random(20_000) < 0.15, GAP.size, block["gap"])
    made = kept(own, block)
    gone = made["end"] == END.size
    assert (made["end"] == block["end"]).all()
    assert ((made["gap"] == GAP.size) == gone).all()
    before = np.sort(block["gap"][block["gap"] < GAP.size])
    assert np.isin(made["gap"][~gone], before).all()
    assert abs(np.median(made["gap"][~gone]) / np.median(before) - 1) < 0.03


def test_what_is_missing_together_is_exchanged_together():
    # A rule ties two pairs: it can be kept at no loss only if each pair moves as one.
    pairs = [("gap", "end"), ("kind", "start2")]
    columns = (*ALL, Column("start2", "integer", 0, 9, nullable=True))
    relations = Relations((), (Rule("", parse("if end is missing then start2 is missing")),), tuple(pairs))
    own, problems = keeper_of(relations, Domain(columns))
    assert problems == []
    rng = np.random.default_rng(4)
    block = rows(10_000) | {"start2": rng.integers(10, size=10_000)}
    for names, share in ((("end", "gap"), 0.1), (("start2", "kind"), 0.2)):
        gone = rng.random(10_000) < share
        for name in names:
            block[name] = np.where(gone, own.omega[name].size, block[name] % own.omega[name].size)
    made = kept(own, block)
    assert not broken(own, made).any()
    for name in ("end", "gap", "start2", "kind"):
        before, after = ((one[name] == own.omega[name].size).mean() for one in (block, made))
        assert abs(before - after) < 0.01, name


def test_where_no_row_has_a_value_one_is_made_up_and_where_no_row_keeps_the_rules_the_known_one_is_taken():
    own = keeper("start == 7 * 11", "end == 123", "end is not missing", missing_with=[("gap", "end")])
    block = {"start": np.full(5, 1), "end": np.full(5, 2), "gap": np.full(5, GAP.size),
             "kind": np.zeros(5, int), "other": np.zeros(5, int)}  # fmt: skip
    made = kept(own, block)
    assert not broken(own, made).any()
    assert (made["start"] == 77).all()
    assert (made["end"] == 123).all()
    assert (made["gap"] < GAP.size).all()


@pytest.mark.parametrize("texts", [(), ("start <= end",)])
def test_a_model_draws_the_same_rows_but_for_those_that_break_a_rule(texts):
    own = keeper(*texts)
    model = Model(10, lambda count, rng: iter([rows(count), rows(count, 9)]))
    made = list(own.model(model).draw(500, np.random.default_rng(0)))
    assert [len(block["start"]) for block in made] == [500, 500]
    for block, drawn in zip(made, (rows(500), rows(500, 9)), strict=True):
        assert not broken(own, block).any()
        assert (block["other"] == drawn["other"]).all()
