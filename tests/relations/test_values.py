"""What an expression is, row by row, and that it never is what its facts exclude."""

import datetime as dt
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.relations.arrays import of_codes
from dpsynth_cli.relations.declared import as_declared, misfit
from dpsynth_cli.relations.facts import Typing
from dpsynth_cli.relations.kinds import column_of
from dpsynth_cli.relations.language import NotAnExpression, parse
from dpsynth_cli.relations.relations import declared_facts
from dpsynth_cli.relations.values import evaluate

DAY = 86_400_000_000
A = Column("a", "integer", -7, 12, nullable=True)
B = Column("b", "integer", -3, 3)
X = Column("x", "continuous", -1.5, 2.0, nullable=True)
Y = Column("y", "continuous", 0.25, 4.0)
BORN = Column("born", "date", -40_000, 40_000, nullable=True)
SEEN = Column("seen", "datetime", -50 * 365 * DAY, 50 * 365 * DAY)
LEFT = Column("left", "datetime", -50 * 365 * DAY, 50 * 365 * DAY, nullable=True)
SEX = Column("sex", "nominal", categories=("F", "M"), nullable=True)
SIZE = Column("size", "ordinal", categories=("S", "M", "L"))
GRADE = Column("grade", "ordinal", categories=("1", "2", "x"))
YES = Column("yes", "boolean", categories=("false", "true"), nullable=True)
ALL = (A, B, X, Y, BORN, SEEN, LEFT, SEX, SIZE, GRADE, YES)
OMEGA = Domain(ALL)
TYPING = Typing(declared_facts(ALL))
ROWS = 500


def rows(count=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    return {column.name: of_codes(rng.integers(column.codes, size=count), column) for column in ALL}


def plain(values):
    """Values as Python has them, None for missing."""
    found = []
    for value, missing in zip(values.data.tolist(), values.missing.tolist(), strict=True):
        found.append(None if missing else values.labels[value] if values.kind == "text" else value)
    return found


def one_by_one(text, function, *columns):
    """What an expression gives beside what a plain function of the values gives, row by row."""
    known = rows()
    given = [plain(known[column.name]) for column in columns]
    made = plain(evaluate(parse(text), known, ROWS))
    return made, [function(*row) for row in zip(*given, strict=True)]


def strict(function):
    """Missing where an argument is."""
    return lambda *values: None if None in values else function(*values)


DATE = dt.date(1970, 1, 1)
TIME = dt.datetime(1970, 1, 1)


@pytest.mark.parametrize(
    ("text", "columns", "function"),
    [
        ("a + b * 2 - 1", (A, B), strict(lambda a, b: a + b * 2 - 1)),
        ("a // b", (A, B), strict(lambda a, b: a // b if b else None)),
        ("a % b", (A, B), strict(lambda a, b: a % b if b else None)),
        ("a / b", (A, B), strict(lambda a, b: a / b if b else None)),
        ("x * y - a", (X, Y, A), strict(lambda x, y, a: x * y - a)),
        ("x // y", (X, Y), strict(lambda x, y: math.floor(x / y))),
        ("-x", (X,), strict(lambda x: -x)),
        ("a < b", (A, B), strict(lambda a, b: a < b)),
        ("3 >= a", (A,), strict(lambda a: a <= 3)),
        ("a in [1, -2, 5]", (A,), strict(lambda a: a in (1, -2, 5))),
        ("a not in [1, -2, 5]", (A,), strict(lambda a: a not in (1, -2, 5))),
        ("a is missing", (A,), lambda a: a is None),
        ("sex == 'F'", (SEX,), strict(lambda sex: sex == "F")),
        ("size > 'S'", (SIZE,), lambda size: size != "S"),
        ("size == sex", (SIZE, SEX), strict(lambda size, sex: size == sex)),
        ("if a > 0 then b else missing", (A, B), strict(lambda a, b: b if a > 0 else None)),
        ("if a > 0 then b", (A, B), strict(lambda a, b: b if a > 0 else None)),
        ("if b > 0 then 'up' else if b < 0 then 'down' else sex", (B, SEX),
         lambda b, sex: "up" if b > 0 else "down" if b < 0 else sex),
        ("if yes then b > 0", (YES, B), lambda yes, b: None if yes is None else not yes or b > 0),
        ("or_else(a, b, 0)", (A, B), lambda a, b: b if a is None else a),
        ("or_else(sex, 'other')", (SEX,), lambda sex: sex or "other"),
        ("number(grade)", (GRADE,), lambda grade: None if grade == "x" else int(grade)),
        ("abs(a)", (A,), strict(abs)),
        ("min(a, b, 1)", (A, B), strict(lambda a, b: min(a, b, 1))),
        ("max(x, b)", (X, B), strict(lambda x, b: max(x, float(b)))),
        ("round(x)", (X,), strict(round)),
        ("floor(x) + ceil(x)", (X,), strict(lambda x: math.floor(x) + math.ceil(x))),
        ("year(born)", (BORN,), strict(lambda d: (DATE + dt.timedelta(d)).year)),
        ("month(born)", (BORN,), strict(lambda d: (DATE + dt.timedelta(d)).month)),
        ("day(born)", (BORN,), strict(lambda d: (DATE + dt.timedelta(d)).day)),
        ("weekday(born)", (BORN,), strict(lambda d: (DATE + dt.timedelta(d)).isoweekday())),
        ("hour(seen)*10000 + minute(seen)*100 + second(seen)", (SEEN,),
         lambda t: int((TIME + dt.timedelta(microseconds=t)).strftime("%H%M%S"))),
        ("weekday(seen)", (SEEN,), lambda t: (TIME + dt.timedelta(microseconds=t)).isoweekday()),
        ("date(seen)", (SEEN,), lambda t: ((TIME + dt.timedelta(microseconds=t)).date() - DATE).days),
        ("seen - left", (SEEN, LEFT), strict(lambda t, u: (t - u) / 1e6)),
        ("seen + 60 * a", (SEEN, A), strict(lambda t, a: t + 60_000_000 * a)),
        ("born + a", (BORN, A), strict(lambda d, a: d + a)),
        ("born - born", (BORN,), strict(lambda d: 0)),
        ("born >= '1970-01-01'", (BORN,), strict(lambda d: d >= 0)),
        ("seen < '1970-01-01'", (SEEN,), lambda t: t < 0),
        ("max(seen, left)", (SEEN, LEFT), strict(max)),
    ],
)  # fmt: skip
def test_an_expression_is_what_python_says(text, columns, function):
    TYPING(parse(text))
    made, expected = one_by_one(text, function, *columns)
    assert made == expected
    assert len({str(value) for value in made}) > 1 or text == "born - born"


def test_logic_is_missing_only_where_what_is_there_does_not_decide():
    known = rows()
    yes = plain(known["yes"])
    positive = [None if a is None else a > 0 for a in plain(known["a"])]
    both = plain(evaluate(parse("yes and a > 0"), known, ROWS))
    either = plain(evaluate(parse("yes or a > 0"), known, ROWS))
    for one, other, all_, any_ in zip(yes, positive, both, either, strict=True):
        assert all_ == (False if False in (one, other) else None if None in (one, other) else True)
        assert any_ == (True if True in (one, other) else None if None in (one, other) else False)
    assert {None, True, False} == set(both) == set(either)


def test_a_number_beyond_1e300_is_missing():
    big = Column("big", "continuous", 0.0, 1e300)
    known = {"big": of_codes(np.array([0, 2**30 - 1]), big)}
    typing = Typing(declared_facts([big]))
    assert typing(parse("big * big")).missing
    assert evaluate(parse("big * big"), known, 2).missing.tolist() == [True, True]
    assert evaluate(parse("big / 1e10 - big / 1e10"), known, 2).missing.tolist() == [False, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agee + 1", "at character 1: 'agee' is not a declared column"),
        ("seenn is missing", "at character 1: 'seenn' is not a declared column (did you mean 'seen'?)"),
        ("sex + 1", "at character 1: a text + a whole number means nothing"),
        ("sex == 'f'", "at character 8: 'f' is not a declared category here"),
        ("size < 'XL'", "at character 8: 'XL' is not a declared category here (did you mean 'L'?)"),
        ("sex < 'M'", "at character 5: only categories of an ordinal column have an order; use == or !="),
        ("grade == 1", "at character 7: a text and a whole number cannot be compared; a label that writes a "
                       "number is one as number(column)"),
        ("yes == 'ja'", "at character 5: true or false and a text cannot be compared; a boolean column is a "
                        "condition by itself, whatever is written for true: its name, or not its name"),
        ("a == missing", "at character 6: nothing equals missing; write `is missing`"),
        ("born < '1970'", 'at character 8: a date is compared with one such as "2026-03-01"'),
        ("seen < 'x'", 'at character 8: a time is compared with one such as "2026-03-01 12:30:00"'),
        ("a and yes", "at character 1: this is a whole number; it must be true or false"),
        ("-sex", "at character 1: this is a text; it must be a number"),
        ("if yes then 1 else 'x'",
         "at character 1: this is a whole number or a text; it must be of one kind"),
        ("yeer(born)", "at character 1: there is no function 'yeer' (did you mean 'year'?); the functions "
                       "are abs, min, max, round, floor, ceil, year, month, day, weekday, hour, minute, "
                       "second, date, or_else, number"),
        ("abs(a, b)", "at character 1: abs takes 1 of them, not 2"),
        ("min(a)", "at character 1: min takes 2 to 20 of them, not 1"),
        ("hour(born)", "at character 1: hour is of a time, not of a date"),
        ("round(x, 20)", "at character 1: round(number, decimals) has 0 to 15 decimals, as a number"),
        ("yes > true", "at character 5: true and false are compared by == and !="),
        ("born * 2", "at character 1: a date * a whole number means nothing"),
        ("born + 9999999", "at character 1: this may be beyond the years 1 to 9999"),
        ("a * 9007199254740992", "at character 1: this may be beyond 2^53, where whole numbers end; use / or "
                                 "smaller bounds"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_said_with_its_place(text, said):
    with pytest.raises(NotAnExpression) as refused:
        TYPING(parse(text))
    assert str(refused.value) == said


# --- nothing is outside its facts --------------------------------------------------------------------------

NUMBERS = st.sampled_from(
    ["a", "b", "x", "y", "number(grade)", "0", "3", "0.5", "-2", "(born - born)", "(seen - left)"]
)
TRUTHS = st.sampled_from(["yes", "a is missing", "sex == 'F'", "size >= 'M'", "born < '1980-02-03'", "true"])


def numbers(inside):
    number, truth = inside, truths_of(inside)
    return st.one_of(
        st.tuples(number, st.sampled_from(["+", "-", "*", "/", "//", "%"]), number).map(
            lambda p: f"({' '.join(p)})"
        ),
        st.tuples(truth, number, number).map(lambda p: f"(if {p[0]} then {p[1]} else {p[2]})"),
        st.tuples(st.sampled_from(["min", "max", "or_else"]), number, number).map(
            lambda p: f"{p[0]}({p[1]}, {p[2]})"
        ),
        st.tuples(st.sampled_from(["abs", "round", "floor", "ceil", "-"]), number).map(
            lambda p: f"{p[0]}({p[1]})"
        ),
        st.sampled_from(["year(born)", "month(seen)", "day(born + 1)", "hour(left)", "weekday(date(seen))"]),
    )


def truths_of(number):
    signs = st.sampled_from(["<", "<=", "==", "!=", ">", ">="])
    compared = st.tuples(number, signs, number).map(lambda p: f"({' '.join(p)})")
    within = number.map(lambda n: f"({n} in [0, 1, 2.5])")
    plain = st.one_of(TRUTHS, compared, within, number.map(lambda n: f"({n} is missing)"))
    joined = st.tuples(plain, st.sampled_from(["and", "or"]), plain).map(lambda p: f"({' '.join(p)})")
    return st.one_of(plain, joined, plain.map(lambda p: f"not {p}"))


EXPRESSIONS = st.recursive(NUMBERS, numbers, max_leaves=8)


@settings(max_examples=500, deadline=None)
@given(st.one_of(EXPRESSIONS, truths_of(EXPRESSIONS)), st.integers(0, 3))
def test_no_value_is_outside_what_the_facts_say(text, seed):
    node = parse(text)
    try:
        facts = TYPING(node)
    except NotAnExpression as error:
        if "2^53" not in str(error):
            raise
        return
    found = evaluate(node, rows(200, seed), 200)
    assert found.kind == facts.kind
    assert facts.missing or not found.missing.any()
    there = found.data[~found.missing]
    assert facts.present or not len(there)
    if len(there):
        assert facts.low <= there.min()
        assert there.max() <= facts.high
    if facts.present and facts.kind != "nothing":
        column = column_of("z", facts)
        assert misfit(column, facts) is None or column.unit > 1
        assert not list(as_declared(column, facts))
