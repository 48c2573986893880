"""The YAML of a draft, for people to read and to complete."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from dpsynth_cli.numbers import decimal

DEFAULT_MECHANISM = "auto"  # what a draft names where nobody chose: here and nowhere else
_PLAIN = re.compile(r"(\.{0,2}/)*[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_PLAIN = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}  # what some YAML readers change
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

_TEMPLATE = """\
# Drafted by dpsynth. {origin}
# {next}
dpsynth: 1
name: {name}
input: {input}
output: {output}
rows: {rows}# as many as the private total says, or a number
# rows_hint: 10000            # a public guess of the number of rows, if there is one
{csv}
privacy:
  epsilon: {epsilon}# the smaller, the more private
  {delta}# then Gaussian noise: less error with many columns
  neighbours: {neighbours}# one person's row is there or not; replace_one: the number of rows is public
  dataset: {dataset}# whose budget is charged

mechanism:
  name: {mechanism}# dpsynth mechanisms lists them
  {strata}# a model for each class of this nominal, ordinal or boolean column

# Only the columns that are listed are released, in this order. There are also nullable: true where cells may
# be missing, other: LABEL for what an unlisted label becomes, type: ordinal for labels that have an order.
columns:
{columns}
{evaluate}
# sampling: {{seed: 7}}         # the seed of sampling; noise has none
"""

_EVALUATE = """
# Errors that may be published have to be paid for: this part of epsilon buys distances of the synthetic
# tables from the real ones, with their noise, in the public audit. Without this line none is measured
# publicly, and the release has all of epsilon; dpsynth check says whether the rows are enough for it.
evaluate: {epsilon: 5%}
"""


@dataclass(frozen=True)
class Choices:
    """What a release costs and how it is made, where that was said already."""

    epsilon: str = "1.0"
    delta: str | None = None
    neighbours: str = "add_remove"
    dataset: str | None = None
    mechanism: str | None = None
    strata: str | None = None
    rows: str | None = None
    evaluate: bool = False  # draft a part of epsilon for errors that may be published


def template(
    choices: Choices,
    *,
    origin: str,
    next_step: str,
    name: str,
    input: str,
    output: str,
    csv: str,
    columns: str,
) -> str:
    """The whole document."""
    return _TEMPLATE.format(
        origin=remark(origin),
        next=remark(next_step),
        name=quoted(name),
        input=quoted(input),
        output=quoted(output),
        csv=csv,
        rows=_padded(scalar_text(choices.rows or "noisy"), 24),
        epsilon=_padded(choices.epsilon, 19),
        delta=_padded(f"delta: {choices.delta}" if choices.delta else "# delta: 1e-9", 28),
        neighbours=_padded(choices.neighbours, 16),
        dataset=_padded(quoted(choices.dataset or name), 19),
        mechanism=_padded(quoted(choices.mechanism or DEFAULT_MECHANISM), 22),
        strata=_padded(f"strata: {quoted(choices.strata)}" if choices.strata else "# strata: COLUMN", 28),
        columns=columns,
        evaluate=_EVALUATE if choices.evaluate else "",
    )


def _padded(text: str, width: int) -> str:
    return text.ljust(width - 1) + " "


def remark(text: str) -> str:
    """What follows a # in a draft: one line, whatever strangers wrote.

    >>> remark("sex\\nprivacy: none")
    'sex privacy: none'
    """
    return _UNPRINTABLE.sub("", " ".join(text.split()))


def quoted(name: str) -> str:
    """A name as YAML writes it.

    >>> quoted("age"), quoted("no"), quoted("hours: weekly")
    ('age', '"no"', '"hours: weekly"')
    """
    if _PLAIN.fullmatch(name) and name.lower() not in _NOT_PLAIN:
        return name
    written = json.dumps(name, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def scalar_text(value: str) -> str:
    """A bound or a label as YAML writes it: numbers and days as they are.

    >>> scalar_text("-1.5"), scalar_text("2020-01-01"), scalar_text("2020-01-01T00:00"), scalar_text("a, b")
    ('-1.5', '2020-01-01', '"2020-01-01T00:00"', '"a, b"')
    """
    bare = decimal(value) is not None or re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value)
    return value if bare else quoted(value)
