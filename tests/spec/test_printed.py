"""`printed: true`: the paper's algorithm, of every mechanism that has one, by one key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.spec.spec import from_document

PRINTED = sorted(name for name, one in mechanisms().items() if one.printed)


def spec_of(name: str, **more: object):
    groups = {"guarantee": "groups", "group_size": 5} if more.pop("groups", False) else {}
    privacy = {"rows_hint": 100, "privacy": {"epsilon": "1", "neighbours": "replace_one"}}
    return from_document(
        {
            "dpsynth": 1,
            "name": "s",
            "output": "-",
            "mechanism": {"name": name} | groups | more,
            "columns": [{"name": f"x{i}", "type": "continuous", "bounds": [0, 1]} for i in range(3)],
        }
        | ({} if groups else privacy)
    )


def test_the_algorithms_of_all_four_papers_have_it():
    assert PRINTED == ["factor", "lowdim", "microaggregation", "online", "pmm"]


@pytest.mark.parametrize("name", PRINTED)
def test_it_is_another_name_for_parameters(name):
    means = dict(mechanisms()[name].printed)
    usual, by_name, by_hand = spec_of(name), spec_of(name, printed=True), spec_of(name, **means)
    assert by_name.params == by_hand.params == replace(usual.params, **means) != usual.params
    assert by_name.effective == by_hand.effective
    again = from_document(by_name.effective)
    assert again.params == by_name.params
    assert spec_of(name, printed=False).params == usual.params


@pytest.mark.parametrize("name", PRINTED)
def test_what_says_otherwise_is_refused(name):
    parameter, value = next(iter(mechanisms()[name].printed.items()))
    other = getattr(spec_of(name).params, parameter)
    with pytest.raises(UsageError) as refused:
        spec_of(name, printed=True, **{parameter: other})
    said = f"mechanism.{parameter} is {other}, but printed: true means {parameter}: {value}; leave one"
    assert said in str(refused.value)


def test_it_is_the_net_of_groups_too_and_unknown_where_there_is_no_paper():
    groups = spec_of("microaggregation", printed=True, groups=True)
    assert (groups.params.partition, groups.params.parameters) == ("net", "paper")
    with pytest.raises(UsageError, match="printed"):
        spec_of("marginals", printed=True)
