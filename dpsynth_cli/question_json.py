"""Questions and answers as plain JSON values: what transcripts, states of streams and audits hold."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.questions import Answer


def as_json(word: Any) -> Any:
    """A question as plain JSON values, the same for equal questions.

    >>> from dpsynth_cli.questions import Question, Total
    >>> as_json(Question("n", Total(), Fraction(1, 20)))
    {'kind': 'Question', 'step': 'n', 'statistic': {'kind': 'Total'}, 'share': '1/20', 'by': None}
    """
    if is_dataclass(word) and not isinstance(word, type):
        return {"kind": type(word).__name__} | {f.name: as_json(getattr(word, f.name)) for f in fields(word)}
    if isinstance(word, Fraction):
        return str(word)
    if isinstance(word, tuple):
        if all(type(part) is int for part in word):
            return list(word)  # thousands of edges
        return [as_json(part) for part in word]
    if isinstance(word, np.integer):
        return int(word)
    return word


def about(question: Any, answer: Answer) -> dict[str, Any]:
    """All of an answer but its values, as JSON."""
    return {"question": question, "lengths": list(answer.lengths), "noise": answer.noise, "sd": answer.sd}
