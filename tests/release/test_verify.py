"""What is said where a file is not what its transcript leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth_cli.errors import VerificationError
from dpsynth_cli.release.synthesis import versions
from dpsynth_cli.release.verify import _compare_output

COUNTED = {"cells": 25_088, "pairs": 6, "threes": 4, "fours": 0}
BY_COLUMN = {"cells": {"age": 30}, "links": [["age", "sex"]]}


@pytest.mark.parametrize(
    ("chosen", "rounding"), [(COUNTED, True), (BY_COLUMN, False), ({"cells": 9, "whole": True}, False)]
)
def test_a_processor_is_named_as_a_cause_only_where_it_can_be_one(chosen, rounding):
    audit = {"release": {"versions": versions()}, "mechanism": {"name": "joint", "chosen": chosen}}
    assert "same bytes" in _compare_output(Path("rebuilt"), "aa", audit, "aa", None)
    with pytest.raises(VerificationError) as told:
        _compare_output(Path("rebuilt"), "aa", audit, "bb", None)
    assert "the synthetic file does not follow from the transcript." in str(told.value)
    assert ("another kind of processor" in str(told.value)) == rounding
