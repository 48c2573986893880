"""A query on a table: the same numbers as a plain computation on values."""

import numpy as np
import pandas as pd
import pytest

from dpsynth_cli.errors import UsageError
from dpsynth_cli.inference.regression import least_squares, logistic
from tests.inference.people import people, spec, statistic

SPEC, CODES = spec(), people()
LEVELS = np.array(["low", "mid", "high", None], object)
FRAME = pd.DataFrame(
    {
        "sex": np.array(["f", "m"])[CODES["sex"]],
        "level": LEVELS[CODES["level"]],
        "age": 20 + CODES["age"],
        "pay": 100 * (CODES["pay"] + 0.5) / 2**30,
    }
)


def answered(text: str, where: str | None = None) -> dict:
    own = statistic(text, SPEC, where)
    return {tuple(label for _, label in key): x for key, x in zip(own.keys, own(CODES), strict=True)}


def test_counts_and_missing_groups():
    found = answered("count() by sex, level", "age >= 30")
    counted = FRAME[FRAME.age >= 30].groupby(["sex", FRAME["level"].fillna("none")]).size()
    assert {(a, b or "none"): n for (a, b), n in found.items()} == counted.to_dict()


def test_shares_leave_missing_values_out():
    expected = FRAME.groupby("sex")["level"].value_counts(normalize=True)
    found = answered("share(level) by sex")
    assert len(found) == 6
    assert all(found[key] == pytest.approx(expected[key]) for key in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean(pay) by sex", FRAME.groupby("sex").pay.mean()),
        ("sum(age) by sex", FRAME.groupby("sex").age.sum()),
        ("sd(pay) by sex", FRAME.groupby("sex").pay.std(ddof=0)),
        ("median(age) by sex", FRAME.groupby("sex").age.quantile(0.5, interpolation="lower")),
        (
            "corr(age, pay) by sex",
            FRAME.groupby("sex").apply(lambda g: g.age.corr(g.pay), include_groups=False),
        ),
    ],
)
def test_groups_have_the_numbers_of_their_values(text, expected):
    found = answered(text)
    assert {key[0]: value for key, value in found.items()} == pytest.approx(expected.to_dict())


def test_a_regression_is_that_of_indicators():
    x = np.column_stack(
        [np.ones(len(FRAME)), FRAME.age, FRAME.sex == "m", FRAME.level == "mid", FRAME.level == "high"]
    )
    keep = FRAME.level.notna().to_numpy()
    expected = np.linalg.lstsq(x[keep].astype(float), FRAME.pay[keep], rcond=None)[0]
    found = answered("pay ~ age + sex + level")
    assert [key[0] for key in found] == ["(constant)", "age", "sex=m", "level=mid", "level=high"]
    assert list(found.values()) == pytest.approx(list(expected))


def test_a_logistic_regression_is_where_the_likelihood_is_flat():
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(500), rng.normal(size=500)])
    y = (rng.random(500) < 1 / (1 + np.exp(-0.5 - x[:, 1]))).astype(float)
    weight = rng.random(500)
    beta = logistic(x, y, weight)
    assert np.abs(x.T @ (weight * (y - 1 / (1 + np.exp(-x @ beta))))).max() < 1e-6
    assert np.isnan(logistic(x, (x[:, 1] > 0).astype(float), np.ones(500))).all()  # a line separates them


def test_a_column_that_repeats_others_has_no_coefficient():
    x = np.column_stack([np.ones(50), np.arange(50.0), 2 * np.arange(50.0) + 1])
    found = least_squares(x, np.arange(50.0), np.ones(50))
    assert found[1] == pytest.approx(1.0)
    assert np.isnan(found[2])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mean(pai)", "'pai' is not a declared column (did you mean 'pay'?)"),
        ("mean(sex)", "mean needs numbers, and sex is a text"),
        ("count() by age, age, age", "the query has 64,000 groups; at most 10,000 are answered"),
        ("count() by pay", "pay has too many values for groups"),
        ("logistic: age ~ pay", "the outcome of a logistic regression has two values"),
    ],
)
def test_what_cannot_be_answered_is_refused(text, problem):
    with pytest.raises(UsageError) as refused:
        statistic(text, SPEC)
    assert problem in refused.value.happened


DAYS = spec(
    **{
        "seen": {"type": "date", "bounds": ["2020-01-01", "2020-12-31"]},
        "wind": {"type": "continuous", "bounds": [0, 18], "step": 0.5, "nullable": True},
        "floor": {"type": "integer", "bounds": [0, 3000], "step": 100},
        "hours-per-week": {"type": "integer", "bounds": [1, 99]},
    }
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("median(seen)", "a quantile needs numbers, and seen is a date"),
        ("wind ~ seen", "a linear regression needs numbers, and seen is a date"),
        ("median(seen + 1)", "a quantile needs numbers, and this is a date"),
    ],
)
def test_a_refusal_names_the_column(text, problem):
    with pytest.raises(UsageError) as refused:
        statistic(text, DAYS)
    assert problem in refused.value.happened


@pytest.mark.parametrize(
    ("text", "where", "hint"),
    [
        ("median(seen)", None, "year(seen) is a number."),
        ("sex ~ age", None, "Of two categories: logistic: sex ~ age"),
        ("mean(sex)", None, "share(sex) has the part of each category."),
        ("count()", "sex == m", "A category stands in quotes: 'm'"),
        ("count()", "sex == 'x' and age > 30", "sex has 'f', 'm'."),
        ("count()", 'level in ["none"]', "level has 'low', 'mid', 'high'."),
        ("age ~ sex + age", None, "Leave it out of these."),
    ],
)
def test_a_refusal_says_what_to_write(text, where, hint):
    with pytest.raises(UsageError) as refused:
        statistic(text, DAYS if "seen" in text else SPEC, where)
    assert refused.value.next_step == hint


def test_a_name_that_needs_backquotes_is_named_with_them():
    for text, where in (("mean(hours-per-week)", None), ("count()", "hours-per-week > 40")):
        with pytest.raises(UsageError) as refused:
            statistic(text, DAYS, where)
        assert "`hours-per-week`" in refused.value.next_step
    with pytest.raises(UsageError, match="backquotes"):
        statistic("count() by hours-per-week", DAYS)


def test_numbers_of_few_values_are_groups():
    own = statistic("count() by wind", DAYS)
    assert [dict(key)["wind"] for key in own.keys[:3]] == ["0", "0.5", "1"]
    assert len(own.keys) == 38  # 37 values, and missing
    found = own({"wind": np.array([1, 1, 36, 37])})
    assert {dict(key)["wind"]: n for key, n in zip(own.keys, found, strict=True) if n} == {
        "0.5": 2, "18": 1, None: 1
    }  # fmt: skip
    floors = statistic("count() by floor", DAYS)
    assert [dict(key)["floor"] for key in floors.keys[:2]] == ["0", "100"]
    assert floors({"floor": np.array([1, 30])})[[1, 30]].tolist() == [1, 1]
