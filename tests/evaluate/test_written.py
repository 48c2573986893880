"""How cells are written, as the verdict sees it, and a file that is not there."""

from __future__ import annotations

from tests.evaluate.test_verdict import spec_of


def test_decimals_of_a_decimal_comma_are_counted(dpsynth, tmp_path):
    """Most cells of a German file have a comma: the few whole ones do not speak for them."""
    cells = [f"{k},5" if k % 3 else str(k) for k in range(300)]
    for name in ("t.csv", "made.csv"):
        (tmp_path / name).write_text("price;n\n" + "".join(f"{cell};1\n" for cell in cells))
    spec = spec_of(
        tmp_path,
        {"price": {"type": "continuous", "bounds": [0, 300], "decimals": 1, "decimal": ","}},
        csv={"delimiter": ";"},
    )
    report = dpsynth("evaluate", spec, "made.csv", "--json").json
    own = report["metrics"]["quantiles"]["synthetic"]["columns"]["price"]
    assert own["decimals"] == {"real": 1, "synthetic": 1}
    words = next(one["words"] for one in report["verdict"]["findings"] if one["kind"] == "column")
    assert "the median is 149.75, as it should" in words or "the median is 149.8, as it should" in words


def test_a_synthetic_file_that_is_not_there_is_named_as_such(dpsynth, tmp_path):
    (tmp_path / "t.csv").write_text("price\n1\n")
    spec = spec_of(tmp_path, {"price": {"type": "continuous", "bounds": [0, 100]}})
    ran = dpsynth("evaluate", spec, "nowhere.csv")
    assert ran.code == 5
    assert "there is no synthetic file nowhere.csv." in ran.err
    assert "Name the one that was released" in ran.err
