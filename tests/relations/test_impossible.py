"""Impossible values: what a rule says, in codes too; what contradicts the declared columns is refused."""

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.shared.rules import Rules, dead_ends
from dpsynth_cli.relations.impossible import checked, expression, in_codes
from dpsynth_cli.relations.relations import Relations, Rule

SEX = Column("sex", "nominal", categories=("female", "male"))
KIN = Column("kin", "nominal", categories=("wife", "husband", "none"), nullable=True)
AGE = Column("age", "integer", lower=10, upper=90, nullable=True)
BORN = Column("born", "date", lower=0, upper=20_000)
SCORE = Column("score", "continuous", lower=0.0, upper=1.0)
ALL = (SEX, KIN, AGE, BORN, SCORE)
COLUMNS = {column.name: column for column in ALL}
NOT_WITHIN = "the range of age is not within its bounds, the lower end first"


def with_rules(*rules, columns=ALL):
    codes = [in_codes(checked(rule), {column.name: column for column in columns}) for rule in rules]
    return Domain(columns, impossible=tuple(codes))


def test_rules_name_codes_on_both_sides_in_either_order():
    rules = Rules(with_rules({"sex": "male", "kin": ["wife"]}, {"kin": "husband", "sex": "female"}))
    table = rules.impossible("kin", "sex", np.arange(4), np.arange(2))
    assert table.tolist() == [[False, True], [True, False], [False, False], [False, False]]
    assert (rules.impossible("sex", "kin", np.arange(2), np.arange(4)) == table.T).all()
    assert not rules.impossible("sex", "age", np.arange(2), np.arange(5)).any()


def test_ranges_of_numbers_and_dates_hold_both_ends():
    rules = Rules(
        with_rules({"age": {"to": "15"}, "kin": "wife"}, {"born": {"from": "1970-01-03"}, "sex": "male"})
    )
    assert rules.impossible("age", "kin", np.array([0, 5, 6, 81]), np.array([0]))[:, 0].tolist() == [
        True, True, False, False,
    ]  # fmt: skip
    assert rules.cuts("age") == [6]
    assert rules.cuts("born") == [2]
    assert rules.cuts("kin") == [1]


def test_lists_of_integers_and_missing_values_are_codes_too():
    omega = with_rules({"age": ["10", "12"], "kin": {"missing": "true"}})
    table = Rules(omega).impossible("age", "kin", np.arange(4), np.arange(4))
    assert np.argwhere(table).tolist() == [[0, 3], [2, 3]]


RULES = [
    {"sex": "male", "kin": "wife"},
    {"age": {"to": "15"}, "kin": ["wife", "husband"]},
    {"age": {"from": "20", "to": "30"}, "born": {"from": "1975-01-01"}},
    {"age": ["40", "41"], "kin": {"missing": "true"}},
    {"kin": {"missing": "true"}, "sex": "female"},
    {"age": "50", "sex": ["male", "female"]},
]


@pytest.mark.parametrize("rule", RULES)
def test_the_expression_and_the_codes_of_a_rule_say_the_same(rule):
    one, other = sorted(rule)
    first, second = np.arange(COLUMNS[one].codes)[:500], np.arange(COLUMNS[other].codes)[::37]
    second = np.unique([*second, *range(min(5, COLUMNS[other].codes)), COLUMNS[other].codes - 1])
    table = Rules(with_rules(rule)).impossible(one, other, first, second)
    a, b = (grid.ravel() for grid in np.meshgrid(first, second, indexing="ij"))
    said = Rule("", expression(rule, COLUMNS))
    broken = Relations(rules=(said,)).broken({one: a, other: b}, Domain(ALL), [said])
    assert broken.any()
    assert (broken.reshape(table.shape) == table).all()


def test_more_than_two_columns_and_continuous_ones_are_rules_but_no_pairs_of_codes():
    three = {"sex": "male", "kin": "wife", "age": "20"}
    assert in_codes(three, COLUMNS) is None
    assert in_codes({"score": {"from": "0.5"}, "sex": "male"}, COLUMNS) is None
    rule = Rule("", expression({"score": {"from": "0.5"}, "sex": "male"}, COLUMNS))
    block = {"score": np.array([0, 2**30 - 1, 2**30 - 1]), "sex": np.array([1, 1, 0])}
    assert Relations(rules=(rule,)).broken(block, Domain(ALL), [rule]).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"sexx": "male", "kin": "wife"}, "sexx is not a declared column"),
        ({"sex": "Male", "kin": "wife"}, "Male is not a declared category of sex"),
        ({"sex": {"from": "1"}, "kin": "wife"}, "sex has categories; name one, or a list of them"),
        ({"age": {"from": "5"}, "kin": "wife"}, NOT_WITHIN),
        ({"age": {"from": "30", "to": "20"}, "kin": "wife"}, NOT_WITHIN),
        ({"age": "young", "kin": "wife"}, "age is integer; young is not"),
        ({"age": ["20", "old"], "kin": "wife"}, "age is integer; old is not"),
        ({"born": "1970-13-01", "kin": "wife"}, "born is date; 1970-13-01 is not"),
        ({"score": "much", "kin": "wife"}, "score is continuous; much is not"),
        ({"sex": {"missing": "true"}, "kin": "wife"}, "sex is never missing; declare it with nullable: true"),
    ],
)
def test_what_contradicts_the_declaration_is_said(rule, said):
    with pytest.raises(ValueError, match="^" + said + "$"):
        expression(checked(rule), COLUMNS)


def test_values_that_the_rules_leave_no_row_are_found():
    assert dead_ends(with_rules({"sex": ["male", "female"], "kin": "wife"})) == [("kin", "wife")]
    # Only three columns together show it: a male is a husband, a husband is born early, a male late.
    three = (
        {"sex": "male", "age": {"to": "50"}},
        {"sex": "male", "born": {"from": "1980-01-01"}},
        {"age": {"from": "51"}, "born": {"to": "1979-12-31"}},
    )
    assert dead_ends(with_rules(*three)) == []  # an age may be missing
    strict = (SEX, Column("age", "integer", lower=10, upper=90), BORN)
    assert dead_ends(with_rules(*three, columns=strict)) == [("sex", "male")]


@pytest.mark.parametrize(
    "rule",
    [
        "none",
        ["sex"],
        {},
        {"sex": "male"},
        {"sex": "male", "kin": None},
        {"sex": "male", "kin": []},
        {"sex": "male", "age": {}},
        {"sex": "male", "age": {"above": "3"}},
        {"sex": "male", "age": {"missing": "false"}},
        {"sex": "male", "age": [["3"]]},
    ],
)
def test_what_is_not_a_rule_is_refused(rule):
    with pytest.raises(ValueError, match="a list of rules such as"):
        checked(rule)


def test_a_possible_row_breaks_no_rule():
    rules = Rules(with_rules({"sex": "male", "kin": "wife"}, {"kin": ["husband", "none"], "age": "10"}))
    row = rules.possible_row({"sex": 1})
    assert row is not None
    assert row["kin"] != 0
    assert not (row["kin"] in (1, 2) and row["age"] == 0)
    assert rules.possible_row({"sex": 1, "kin": 0}) is None
