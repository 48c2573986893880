"""The text of an expression: any text is one, or an error that names a character, in linear time."""

import time
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column
from dpsynth_cli.relations.facts import Typing
from dpsynth_cli.relations.kinds import Facts
from dpsynth_cli.relations.language import DEEPEST, LONGEST, NotAnExpression, parse
from dpsynth_cli.relations.nodes import (
    Call,
    Case,
    Chain,
    Compare,
    IsMissing,
    Literal,
    Logic,
    Name,
    Negative,
    Not,
    Within,
    names,
)  # fmt: skip
from dpsynth_cli.relations.relations import declared_facts

COLUMNS = (
    Column("a", "integer", 0, 9),
    Column("b", "continuous", 0.0, 1.0, nullable=True),
    Column("when", "datetime", 0, 10**15),
    Column("born", "date", 0, 9999),
    Column("sex", "nominal", categories=("F", "M")),
    Column("size", "ordinal", categories=("S", "M", "L")),
    Column("two words", "boolean", categories=("false", "true")),
)
TYPING = Typing(declared_facts(COLUMNS))


def bare(node):
    """The same without the places where its parts were written."""
    match node:
        case Literal(value):
            return value
        case Name(name):
            return f"<{name}>"
        case Chain(first, rest):
            return ("chain", bare(first), *((sign, bare(part)) for sign, part in rest))
        case Negative(part):
            return ("-", bare(part))
        case Compare(sign, left, right):
            return (sign, bare(left), bare(right))
        case Within(part, choices):
            return ("in", bare(part), [choice.value for choice in choices])
        case IsMissing(part):
            return ("missing?", bare(part))
        case Not(part):
            return ("not", bare(part))
        case Logic(word, parts):
            return (word, *map(bare, parts))
        case Case(cases, otherwise):
            return ("if", *((bare(c), bare(v)) for c, v in cases), otherwise and bare(otherwise))
        case Call(function, arguments):
            return (function, *map(bare, arguments))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a // 100", ("chain", "<a>", ("//", 100))),
        ("1 + 2 * 3 - 4", ("chain", 1, ("+", ("chain", 2, ("*", 3))), ("-", 4))),
        ("(1 + 2) * 3", ("chain", ("chain", 1, ("+", 2)), ("*", 3))),
        ("-a % - 2", ("chain", ("-", "<a>"), ("%", ("-", 2)))),
        ("not a = 1 and b != .5e1", ("and", ("not", ("==", "<a>", 1)), ("!=", "<b>", 5))),
        ("a or b and c", ("or", "<a>", ("and", "<b>", "<c>"))),
        ("x is missing", ("missing?", "<x>")),
        ("x is not missing", ("not", ("missing?", "<x>"))),
        ("x in [1, -2, \"y\", 'it''s', true]", ("in", "<x>", [1, -2, "y", "it's", True])),
        ("x not in [1]", ("not", ("in", "<x>", [1]))),
        ("if a<15 then b is missing", ("if", (("<", "<a>", 15), ("missing?", "<b>")), None)),
        ("if a then 1 else if b then 2 else 3", ("if", ("<a>", 1), ("<b>", 2), 3)),
        ("max(a, min(b,1))", ("max", "<a>", ("min", "<b>", 1))),
        ("`two words` == false", ("==", "<two words>", False)),
        ("`back``quote`", "<back`quote>"),
        ("größe + 0.1", ("chain", "<größe>", ("+", Fraction(1, 10)))),
        ("missing", None),
    ],
)
def test_a_text_means_what_it_says(text, meant):
    assert bare(parse(text)) == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at character 1: a column, a number, a text in quotes or ( must be here; it ends"),
        ("a +", "at character 4: a column, a number, a text in quotes or ( must be here; it ends"),
        ("a 3", "at character 3: '3' follows; the expression ended before it"),
        ("a $ 3", "at character 3: '$ 3' cannot be read here"),
        ("'open", 'at character 1: "\'open" cannot be read here'),
        ("a < b < c", "at character 7: one comparison at a time; join two by `and`; there is '<'"),
        ("if a", "at character 5: `then` must be here; it ends"),
        ("a in [b]", "at character 7: a list has numbers, texts in quotes, true or false"),
        ("f(1", "at character 4: `)` must be here; it ends"),
        ("a ** 2", "at character 4: a column, a number, a text in quotes or ( must be here; there is '*'"),
        ("1e400", "at character 1: a number is 0 or between 1e-300 and 1e300"),
        ("a.b", "at character 2: '.b' cannot be read here"),
        ("a is 3", "at character 6: `missing` must be here; there is '3'"),
        ("(" * 60, f"at character {DEEPEST + 2}: this is nested more than {DEEPEST} deep"),
        ("1" * (LONGEST + 1), "at character 4001: an expression has at most 4,000 characters"),
    ],
)
def test_what_is_no_expression_is_said_with_its_place(text, said):
    with pytest.raises(NotAnExpression) as refused:
        parse(text)
    assert str(refused.value) == said


PIECES = [
    "a", "b", "when", "born", "sex", "size", "`two words`", "nobody", "1", "0", "-", "2.5", "1e300", "1e-300",
    '"F"', '"M"', "'2020-01-01'", "(", ")", "[", "]", ",", "+", "*", "/", "//", "%", "=", "==", "!=", "<",
    "<=", ">", ">=", " and ", " or ", " not ", " in ", " is ", " missing ", " if ", " then ", " else ",
    "true", "false", "min(", "max(", "abs(", "year(", "month(", "hour(", "or_else(", "number(", "round(",
    "date(", "weekday(", "$", "'", "`", "\n", "é", "\x00", "٣", "_", ".",
]  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)))
def test_any_text_is_an_expression_of_known_facts_or_an_error_at_one_of_its_characters(text):
    refused = None
    try:
        node = parse(text)
        assert all(text[name.at] in "`" + name.name[:1] for name in names(node))
        assert isinstance(TYPING(node), Facts)
    except NotAnExpression as error:
        refused = error
    if refused:
        assert 0 <= refused.at <= len(text)
        assert "\n" not in str(refused)


@pytest.mark.parametrize(
    "piece",
    [*PIECES, "a+", "not ", "(-", "a and ", "if a then ", "1,", "''", '""', "``", "1e", "9.", "a<", "min(a,"],
)
def test_the_time_is_linear_in_the_text_whatever_it_repeats(piece):
    text = (piece * LONGEST)[:LONGEST]
    begin = time.process_time()
    for _ in range(3):
        with suppress(NotAnExpression):
            parse(text)
    assert time.process_time() - begin < 1.0
