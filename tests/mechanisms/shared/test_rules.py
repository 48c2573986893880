"""Rules: what is impossible, in codes; what contradicts the declared columns is refused in words."""

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.shared.rules import Rules, problems, read

SEX = Column("sex", "nominal", categories=("female", "male"))
KIN = Column("kin", "nominal", categories=("wife", "husband", "none"), nullable=True)
AGE = Column("age", "integer", lower=10, upper=90, nullable=True)
BORN = Column("born", "date", lower=0, upper=20_000)
SCORE = Column("score", "continuous", lower=0.0, upper=1.0)
OMEGA = Domain((SEX, KIN, AGE, BORN, SCORE))


NOT_WITHIN = "the range of age is not within its bounds, the lower end first"
NOT_CONTINUOUS = "score is continuous; rules are for categories, integers and dates"


def impossible(*rules):
    return read({"impossible": list(rules)})


def test_rules_name_codes_on_both_sides_in_either_order():
    rules = Rules(impossible({"sex": "male", "kin": ["wife"]}, {"kin": "husband", "sex": "female"}), OMEGA)
    table = rules.impossible("kin", "sex", np.arange(4), np.arange(2))
    assert table.tolist() == [[False, True], [True, False], [False, False], [False, False]]
    assert (rules.impossible("sex", "kin", np.arange(2), np.arange(4)) == table.T).all()
    assert not rules.impossible("sex", "age", np.arange(2), np.arange(5)).any()


def test_ranges_of_numbers_and_dates_hold_both_ends():
    rules = Rules(
        impossible({"age": {"to": "15"}, "kin": "wife"}, {"born": {"from": "1970-01-03"}, "sex": "male"}),
        OMEGA,
    )
    assert rules.impossible("age", "kin", np.array([0, 5, 6, 81]), np.array([0]))[:, 0].tolist() == [
        True, True, False, False,
    ]  # fmt: skip
    assert rules.cuts("age") == [6]
    assert rules.cuts("born") == [2]
    assert rules.cuts("kin") == [1]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"sexx": "male", "kin": "wife"}, "sexx is not a declared column"),
        ({"sex": "Male", "kin": "wife"}, "Male is not a declared category of sex"),
        ({"sex": {"from": "1"}, "kin": "wife"}, "sex has categories; name one, or a list of them"),
        ({"age": {"from": "5"}, "kin": "wife"}, NOT_WITHIN),
        ({"age": {"from": "30", "to": "20"}, "kin": "wife"}, NOT_WITHIN),
        ({"age": ["20", "30"], "kin": "wife"}, "age is integer; name one value, or a range such as {to: 15}"),
        ({"age": "young", "kin": "wife"}, "age is integer; young is not"),
        ({"born": "1970-13-01", "kin": "wife"}, "born is date; 1970-13-01 is not"),
        ({"score": "0.5", "kin": "wife"}, NOT_CONTINUOUS),
    ],
)
def test_what_contradicts_the_declaration_is_said(rule, said):
    assert problems(impossible(rule), OMEGA) == [f"mechanism.rules.impossible, rule 1: {said}"]


def test_values_that_the_rules_leave_no_row_are_refused():
    assert problems(impossible({"sex": ["male", "female"], "kin": "wife"}), OMEGA) == [
        "mechanism.rules.impossible leaves no row that has wife in kin; leave that out of the column's "
        "declaration, or drop a rule"
    ]
    # Only three columns together show it: a male is a husband, a husband is born early, a male late.
    three = impossible(
        {"sex": "male", "age": {"to": "50"}},
        {"sex": "male", "born": {"from": "1980-01-01"}},
        {"age": {"from": "51"}, "born": {"to": "1979-12-31"}},
    )
    assert len(problems(three, OMEGA)) == 0  # an age may be missing
    strict = Domain((SEX, Column("age", "integer", lower=10, upper=90), BORN))
    assert problems(three, strict) == [
        "mechanism.rules.impossible leaves no row that has male in sex; leave that out of the column's "
        "declaration, or drop a rule"
    ]


@pytest.mark.parametrize(
    "value",
    [
        "none",
        ["sex"],
        {},
        {"imposible": []},
        {"impossible": {"sex": "male"}},
        {"impossible": [{"sex": "male"}]},
        {"impossible": [{"sex": "male", "kin": None}]},
        {"impossible": [{"sex": "male", "kin": []}]},
        {"impossible": [{"sex": "male", "age": {}}]},
        {"impossible": [{"sex": "male", "age": {"above": "3"}}]},
        {"impossible": [{"sex": "male", "age": [["3"]]}]},
    ],
)
def test_what_is_not_a_list_of_rules_is_refused(value):
    with pytest.raises(ValueError, match="impossible: a list of rules such as"):
        read(value)


def test_a_possible_row_breaks_no_rule():
    rules = Rules(
        impossible({"sex": "male", "kin": "wife"}, {"kin": ["husband", "none"], "age": "10"}), OMEGA
    )
    row = rules.possible_row({"sex": 1})
    assert row is not None
    assert row["kin"] != 0
    assert not (row["kin"] in (1, 2) and row["age"] == 0)
    assert rules.possible_row({"sex": 1, "kin": 0}) is None
