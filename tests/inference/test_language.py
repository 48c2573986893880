"""The text of a query: every text is a query or an error that says where."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.errors import UsageError
from dpsynth_cli.inference.language import Query, parse_query


def test_calls_groups_and_formulas_are_read():
    mean = parse_query("mean(pay / 12) by sex, `a column`")
    assert (mean.kind, mean.by, mean.named) == ("mean", ("sex", "a column"), ("pay", "sex", "a column"))
    assert parse_query("median(age)").level == Fraction(1, 2)
    assert parse_query("quantile(age, 0.9)").level == Fraction(9, 10)
    formula = parse_query("pay ~ age / 10 + sex", "age > 30")
    assert (formula.kind, formula.terms, formula.named) == (
        "linear",
        ("age / 10", "sex"),
        ("pay", "age", "sex"),
    )
    assert parse_query('logistic: sex == "a~b" ~ age').kind == "logistic"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "at character 1: a column, a number, a text in quotes or ( must be here; it ends"),
        ("average(pay)", "at character 1: it begins with one of count, share"),
        ("average(pay)", "or it is a formula with ~ (did you mean mean?)"),
        ("meen(pay)", "(did you mean mean?)"),
        ("COUNT()", "(did you mean count?)"),
        ("count(sex)", "count takes nothing; groups stand behind by: count() by sex"),
        ("mean(pay) where age > 3", "at character 11: a condition is an option: --where 'age > 3'"),
        ("count() by sex where age > 3", "a condition is an option: --where 'age > 3'"),
        ("mean(pay, age)", "at character 1: mean takes one argument"),
        ("quantile(pay, 2)", "at character 15: the second argument of quantile is a number between 0 and 1"),
        ("quantile(pay, true)", "the second argument of quantile"),
        ("share(pay + 1)", "share takes a column"),
        ("mean(pay) by", "at character 13: a column must be here"),
        ("mean(pay) by sex age", "at character 18: columns are separated by commas"),
        ("pay ~ age - sex", "at character 13: terms of a regression are joined by +"),
        ("pay ~", "at character 6: a column, a number"),
    ],
)
def test_a_mistake_is_named_with_its_place(text, problem):
    with pytest.raises(UsageError) as refused:
        parse_query(text)
    assert problem in refused.value.happened


def test_a_text_without_end_is_refused():
    with pytest.raises(UsageError, match="at most 4,000 characters"):
        parse_query("count() by a" + ", a" * 2000)


def test_a_condition_that_cannot_be_read_is_named():
    with pytest.raises(UsageError, match="--where 'age >': at character 6"):
        parse_query("count()", "age >")


@given(st.text(alphabet="mean(pay) by~+,:`'\"0.9sxlogistic", max_size=60), st.text(max_size=20))
def test_any_text_is_a_query_or_an_error(text, more):
    with suppress(UsageError):
        assert isinstance(parse_query(text + more), Query)
