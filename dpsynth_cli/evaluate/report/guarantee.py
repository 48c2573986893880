"""What is promised, what it leaves an attacker, and what the page's reader may rely on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth_cli.evaluate.report.markup import few, items, paragraph, percent, section, table
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.release.documents.guarantee import kept_of_a_unit

BELIEFS = (0.01, 0.1, 0.5)
LITTLE, CLEAR = 0.05, 0.5  # found by an attacker who is wrong about 1 in 100


def guarantee(audit: Mapping[str, Any]) -> str:
    """The promise as it stands in the audit, and in plain words."""
    promised = audit["guarantee"]
    stated = paragraph(promised["statement"], "box")
    if "epsilon" not in promised:  # a release by groups: its statement says all
        return section("guarantee", "The guarantee", stated)
    where = "in any push" if _stream(audit) else "in the table"
    column = promised.get("unit_column")
    own = f"all its rows of one {promised['unit_per']}" if "unit_per" in promised else "all its rows"
    who = "one row" if column is None else f"one {column}, with {own},"
    others = "every other row" if column is None else "the rows of all others"
    plain = f"In plain words: somebody suspects that {who} was {where}. They know {others}, see "
    plain += f"{_seen(audit)}, and have all the time and computers of the world."
    return section("guarantee", "The guarantee", stated, paragraph(plain), _odds(promised), _attack(promised))


def _seen(audit: Mapping[str, Any]) -> str:
    if _stream(audit):
        return "every snapshot of this stream, now and for as long as it goes on"
    return "all that was published here"


def _stream(audit: Mapping[str, Any]) -> bool:
    known = mechanisms().get(audit["mechanism"]["name"])
    return known is not None and bool(known.stream)


def _odds(promised: Mapping[str, Any]) -> str:
    epsilon, delta = float(promised["epsilon"]), promised["delta"]
    factor = _factor(epsilon)
    what = {
        "add_remove": "that it was there",
        "replace_one": "that it said one thing rather than another",
    }.get(promised["neighbours"], "that it was there")
    slack = f", but for a part of probability at most {delta}" if delta else ""
    first = paragraph(
        f"Whatever they try, the odds {what} change by a factor of at most {factor} (e^{promised['epsilon']})"
        f"{slack}, up or down."
    )
    if delta or epsilon > 700:
        return first
    odds = math.exp(epsilon)
    rows = [
        (
            percent(belief),
            percent(belief / (belief + (1 - belief) * odds), 2),
            percent(belief * odds / (1 - belief + belief * odds), 2),
        )
        for belief in BELIEFS
    ]
    head = ("who believed in it with", "believes afterwards at least", "and at most")
    return first + table(head, rows, range(3))


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):,.3g}" if epsilon < 20 else "more than 400 million"


def _attack(promised: Mapping[str, Any]) -> str:
    """Error rates of the best attack; an audit of an earlier version has none."""
    attack = promised.get("profile", {}).get("attack", [])
    if not attack:
        return ""
    rows = [
        (_of(line["false_positives"]), _of(line["true_positives"]), _of(line["false_positives"]))
        for line in attack
    ]
    what = "rows" if promised.get("unit_column") is None else "units"
    head = (
        f"who is wrong about so many {what} that are not in the table",
        "finds at most so many of those that are",
        "blind guessing finds",
    )
    found = next((a["true_positives"] for a in attack if a["false_positives"] == 0.01), None)
    said = ""
    if found is not None:
        words = (
            "Such an attacker learns little more than by guessing."
            if found <= LITTLE
            else "Such an attacker does clearly better than by guessing."
            if found <= CLEAR
            else f"Against such an attacker this promise is weak: most {what} could be found out."
        )
        said = paragraph(f"{words} Real attackers know less, and do worse.")
    before = paragraph("As error rates, which is what the promise says in full:")
    return before + table(head, rows, range(3)) + said


def _of(rate: float) -> str:
    """A rate as people count it.

    >>> _of(0.0031), _of(0.0242), _of(0.5)
    ('3.1 of 1,000', '2.42 of 100', '50 of 100')
    """
    base = 1000 if rate < 0.01 else 100
    return f"{base * rate:.4g} of {base:,}"


def on_the_tin(audit: Mapping[str, Any], kept: Sequence[str] = (), computed: Sequence[str] = ()) -> str:
    """What the label says: what may be relied on, and what may not."""
    promised = audit["guarantee"]
    does, does_not = _groups() if "epsilon" not in promised else _private(audit, promised)
    if kept:
        does.append(f"Every row keeps these rules: {few(kept)}.")
    if computed:
        does.append(f"These columns are computed from others of the same row: {few(computed)}.")
    return (
        '<div class="two"><div class="box holds"><h3>What you may rely on</h3>'
        f'{items(does)}</div><div class="box weaker"><h3>What you may not</h3>{items(does_not)}</div></div>'
    )


def _private(audit: Mapping[str, Any], promised: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    unit = promised["unit"]
    does = [
        "All rows were drawn from noisy answers: how much one of them tells about a real person is what "
        "epsilon says, and no more.",
        "The promise is kept whatever else is known or published later, and whatever is computed from these "
        "files: more rows, tables, models.",
        "What was asked of the data, with which noise, is in the transcript. Anybody can rebuild the file "
        "from it.",
        "Names, bounds and categories of columns were declared or paid for, never taken from the data "
        "unnoticed.",
    ]
    of_one_day = " that were pushed on one day" if "unit_per" in promised else ""
    does_not = [
        *(
            [
                f"It protects {unit}. Somebody with several rows has less: for k rows the epsilon is up to k "
                "times as large (and a delta grows too), unless their rows were limited beforehand."
            ]
            if unit.startswith(("one row", "one event"))
            else []
        ),
        *(
            [
                f"It protects all rows with the same {promised['unit_column']}{of_one_day}. Somebody "
                f"whose rows have several of them has less; and of each at most {kept_of_a_unit(promised)} "
                "were used, so that who has more counts for fewer."
            ]
            if "unit_column" in promised
            else []
        ),
        "It is not a promise about groups: what is true of many rows may be learnt here, that is its "
        "purpose, and may be guessed of somebody who never was in the table.",
        "It is not a promise of accuracy: small groups, rare values and combinations of many columns "
        "suffer first.",
        f"It adds up: every other release of the same data ({audit['budget']['ledger']['dataset']}) takes "
        "its own share of privacy.",
        "Standard errors computed as if these were real rows are too small: the noise is not in them.",
    ]
    return does, does_not


def _groups() -> tuple[list[str], list[str]]:
    return (
        ["Every released row stands for a group of at least the stated size."],
        [
            "This is not differential privacy: no limit is known for what the file tells somebody who "
            "knows others.",
            "Two such releases of the same data can be compared with each other, and tell more together.",
        ],
    )
