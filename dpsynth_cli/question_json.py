"""Questions and answers as plain JSON values: what transcripts, states of streams and audits hold."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.questions import (
    Answer,
    Bins,
    CellCounts,
    Cells,
    Gram,
    Halves,
    Misfit,
    Question,
    Scored,
    Total,
)


def as_json(word: Any) -> Any:
    """A question as plain JSON values, the same for equal questions.

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


def of_json(word: Any) -> Any:
    """A question again from its JSON: the inverse of `as_json`, for what a stream asks.

    >>> of_json(as_json(Question("n", Total(), Fraction(1, 20)))) == Question("n", Total(), Fraction(1, 20))
    True
    """
    if isinstance(word, dict):
        parts = {name: of_json(part) for name, part in word.items() if name != "kind"}
        if "share" in parts:
            parts["share"] = Fraction(parts["share"])
        return STREAMED[word["kind"]](**parts)
    return tuple(map(of_json, word)) if isinstance(word, list) else word


STREAMED = {
    kind.__name__: kind for kind in (Question, Total, CellCounts, Gram, Misfit, Cells, Halves, Bins, Scored)
}
