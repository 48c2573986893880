"""Every benchmark can be listed, asked for help and started; one runs whole on a sample table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import benchmark, main, names, parser_of
from benchmarks.harness import means, number, shown, written

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_list_has_a_line_for_each(capsys):
    main([])
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert listed == names()
    assert {"joint", "scale", "noise", "peers.opendp"} <= set(listed)


@pytest.mark.parametrize("name", names())
def test_every_benchmark_has_help_and_parts(name, capsys):
    module = benchmark(name)
    assert module.PARTS
    assert set(getattr(module, "DEFAULT", ())) <= set(module.PARTS)
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0
    assert f"python -m benchmarks {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", names())
def test_no_benchmark_takes_a_part_that_it_does_not_have(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "nothing-like-it"])
    assert "no part is called nothing-like-it" in capsys.readouterr().err


@pytest.mark.parametrize("page", ["README.md", "RESULTS.md"])
def test_every_command_of_the_pages_is_one(page):
    commands = re.findall(r"`python -m benchmarks ([^`]*)`", (ROOT / "benchmarks" / page).read_text())
    assert commands
    for command in commands:
        name, *rest = re.sub(r"[\[\]]|\.\.\.", "", command).split()
        if name not in ("NAME", "--help"):
            given = parser_of(name, benchmark(name)).parse_intermixed_args(
                [{"R": "5", "D": "1", "E": "1"}.get(word, word) for word in rest]
            )
            assert set(given.parts) <= set(benchmark(name).PARTS), command


def test_a_table_with_a_spec_is_released_and_judged_by_dpsynth_evaluate(tmp_path, capsys):
    spec = ROOT / "configs" / "people_marginals.yaml"
    out = tmp_path / "found.json"
    words = ["joint", "--table", str(spec), "--mechanism", "marginals", "--runs", "1", "--by", "dpsynth"]
    main([*words, "--epsilon", "2", "--json", str(out)])
    head, _, line = capsys.readouterr().out.splitlines()
    assert head.startswith("| table | epsilon | delta | who | runs |")
    assert line.startswith("| people_marginals | 2 | 1e-09 | marginals | 1 |")
    (found,) = json.loads(out.read_text())
    assert 0 < found["_all"]["dpsynth tvd1"] < found["_all"]["dpsynth tvd2"] < 0.5
    assert found["2-way"] == found["_all"]["dpsynth tvd2"]


def test_sizes_beside_a_table_become_its_categories(tmp_path):
    from benchmarks import tables

    (tmp_path / "small.csv").write_text("b,a\n0,2\n1,0\n")
    (tmp_path / "small-domain.json").write_text(json.dumps({"a": 3, "b": 2}))
    table = tables.of_sizes(tmp_path / "small.csv")
    omega, codes = table.codes()
    assert [(column.name, column.categories) for column in omega] == [
        ("b", ("0", "1")),
        ("a", ("0", "1", "2")),
    ]
    assert {name: list(values) for name, values in codes.items()} == {"b": [0, 1], "a": [2, 0]}


def test_another_table_begins_where_the_keys_change():
    found = [{"a": 1}, {"a": 2}, "Then.", {"b": 0.5, "_hidden": 3}]
    assert list(shown(found)) == [
        "| a |",
        "|---|",
        "| 1 |",
        "| 2 |",
        "",
        "Then.",
        "",
        "| b |",
        "|---|",
        "| 0.5 |",
    ]


def test_numbers_are_short():
    assert [number(x) for x in (0.123456, 1e-9, 12345.6, 12345, None, float("nan"), "pure")] == [
        "0.1235", "1e-09", "12,345.6", "12,345", "", "", "pure"
    ]  # fmt: skip


def test_a_mean_is_of_what_every_release_has():
    assert means([{"a": 1.0, "b": 2.0}, {"a": 3.0}]) == {"a": 2.0}


def test_writing_replaces_one_section_in_its_place(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text("# Results\n\n## One\n\nold\n\n## Two\n\nkept\n")
    written(page, "## One", "python -m benchmarks one", ["new"])
    text = page.read_text()
    assert "old" not in text
    assert text.index("## One") < text.index("new") < text.index("## Two") < text.index("kept")
    assert "`python -m benchmarks one --write`" in text


def test_predictions_are_looked_up_in_their_ranges(tmp_path, capsys, monkeypatch):
    from benchmarks import packaged

    def people():
        rng = np.random.default_rng(0)
        return pd.DataFrame(
            {
                "age": rng.integers(18, 90, 400),
                "pay": rng.lognormal(size=400),
                "kids": np.where(rng.random(400) < 0.2, np.nan, rng.integers(0, 4, 400)),
                "city": rng.choice(["a", "b", None], 400),
                "id": [f"row {i}" for i in range(400)],
                "same": 1,
            }
        )

    declared = packaged.packaged(people, tmp_path / "t.csv", 200)
    assert list(declared) == ["age", "pay", "kids", "city"]
    assert declared["kids"] == {"type": "integer", "bounds": [0, 3], "nullable": True}
    assert declared["city"] == {"type": "nominal", "categories": ["a", "b"], "nullable": True}
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 201
    monkeypatch.setattr(packaged, "JUDGED", {"people": people})
    out = tmp_path / "found.json"
    main(["predictions", "--mechanism", "marginals", "--epsilon", "1", "--json", str(out)])
    said, *lines = json.loads(out.read_text())
    assert said.startswith("1 tables, 1 releases, delta 1e-09: ")
    assert {line["error"] for line in lines if "error" in line} >= {"w1", "tvd1", "tvd2"}
    assert "| people (400 x 4) |" in capsys.readouterr().out
