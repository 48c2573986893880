"""What is said where a file is not what its transcript leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth_cli.errors import VerificationError
from dpsynth_cli.release.synthesis import versions
from dpsynth_cli.release.verify import _compare_output


def test_what_does_not_follow_is_refused_and_only_other_versions_are_named_as_a_cause():
    audit = {"release": {"versions": versions()}}
    assert "same bytes" in _compare_output(Path("rebuilt"), "aa", audit, "aa", None)
    with pytest.raises(VerificationError) as told:
        _compare_output(Path("rebuilt"), "aa", audit, "bb", None)
    assert str(told.value).rstrip() == "the synthetic file does not follow from the transcript."
    audit["release"]["versions"] = versions() | {"numpy": "1.0"}
    with pytest.raises(VerificationError) as told:
        _compare_output(Path("rebuilt"), "aa", audit, "bb", None)
    assert "Versions differ: numpy 1.0 there, " in str(told.value)
