"""How good the release is, in words and worst first: measured by the steward, or paid for, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.report.markup import facts, few, items, paragraph, percent, section, table, text
from dpsynth_cli.evaluate.report.units import number
from dpsynth_cli.evaluate.verdict.verdict import WORDS

STATES = ("broken", "weaker", "holds")
CLOSE, FAR = 0.05, 0.15  # of the rows in other cells: up to here it holds, from here it is broken
FIRST, MOST_FINDINGS, MOST_TABLES = 3, 20, 25  # that are shown
MEASURED_NOTHING = (
    "No error was measured publicly. How far this table is from the real one cannot be told from these "
    "files: an error against real rows is a fact about them, and none was paid for"
)


def verdict(audit: Mapping[str, Any], domain: Domain) -> str:
    """The first thing on the page."""
    if audit["publishable"]:
        key = " (evaluate.epsilon in the spec)" if "epsilon" in audit.get("guarantee", {}) else ""
        nothing = paragraph(f"{MEASURED_NOTHING}{key}.", "lead box weaker")
        body = _paid_lead(audit, domain) or nothing
        return section("verdict", "How good is it?", body)
    return section("verdict", "How good is it?", _measured(audit), _paid_lead(audit, domain))


def holds(audit: Mapping[str, Any]) -> str:
    """Everything that was judged: what holds and what does not."""
    utility = audit.get("utility") or {}
    findings = utility.get("verdict", {}).get("findings", [])
    return _findings(findings) + _paid_tables(audit)


# ---- measured by the steward ------------------------------------------------------------------------


def _measured(audit: Mapping[str, Any]) -> str:
    utility = audit.get("utility")
    if not utility:
        return paragraph(
            "This release was not judged: its spec says evaluate: {metrics: none}. dpsynth evaluate does it.",
            "lead box weaker",
        )
    if "failed" in utility:
        return paragraph(f"This release could not be judged: {utility['failed']}", "lead box broken")
    judged = utility.get("verdict")
    if judged is None:
        return paragraph(
            "The audit has figures but no verdict. dpsynth evaluate gives one.", "lead box weaker"
        )
    counts = judged["counts"]
    state = next((state for state in STATES if counts.get(state)), "holds")
    summary = "".join(paragraph(words, "lead") for words in _sentences(judged["summary"]))
    worst = [found for found in judged["findings"] if found["state"] != "holds"][:FIRST]
    return (
        f'<div class="box {state}">{summary}{_counts(counts)}</div>'
        + (f"<p>The worst of it:</p>{_list(worst, False)}" if worst else "")
        + paragraph("Measured on real rows: confidential.", "small")
    )


def _sentences(summary: object) -> Sequence[str]:
    return [summary] if isinstance(summary, str) else list(summary)  # type: ignore[call-overload]


def _counts(counts: Mapping[str, int]) -> str:
    words = {"broken": "broken", "weaker": "weaker", "holds": "hold"}
    inside = "".join(
        f'<li class="{state}">{counts[state]:,} {words[state]}</li>' for state in STATES if counts.get(state)
    )
    return f'<ul class="counts">{inside}</ul>' if inside else ""


def _findings(findings: Sequence[Mapping[str, Any]]) -> str:
    if not findings:
        return ""
    bad = [found for found in findings if found["state"] != "holds"]
    good: dict[str, dict[str, None]] = {}
    for found in findings:
        if found["state"] == "holds":
            good.setdefault(found["kind"], {})[" and ".join(found["columns"])] = None
    parts = ["<h3>What does not hold, worst first</h3>", _list(bad, True) or paragraph("Nothing was found.")]
    if good:
        rows = [(_capital(WORDS.get(kind, kind)), few(list(names))) for kind, names in good.items()]
        parts += ["<h3>What holds</h3>", facts(rows)]
    return "".join(parts)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _list(findings: Sequence[Mapping[str, Any]], figures: bool) -> str:
    lines = []
    for found in findings[:MOST_FINDINGS]:
        state = found["state"] if found["state"] in STATES else "weaker"
        beside = f' <span class="small">{text(_figures(found))}</span>' if figures and _figures(found) else ""
        lines.append(
            f'<li class="{state}"><span class="state">{state}</span> {text(found["words"])}{beside}</li>'
        )
    more = len(findings) - MOST_FINDINGS
    rest = paragraph(f"And {more:,} more, which are in the audit.", "small") if more > 0 else ""
    return f'<ul class="findings">{"".join(lines)}</ul>{rest}' if lines else ""


def _figures(found: Mapping[str, Any]) -> str:
    """The error behind a sentence, and what it is for the references, as far as they were computed."""
    names = {
        "error": "error",
        "real_split": "of half of the real rows",
        "independent": "of independent columns",
    }
    shown = [
        f"{name} {number(float(f'{found[key]:.2g}'))}"
        for key, name in names.items()
        if isinstance(found.get(key), (int, float))
    ]
    return f"({'; '.join(shown)})" if shown else ""


# ---- paid for ---------------------------------------------------------------------------------------


def _state(tvd: float) -> str:
    return "holds" if tvd <= CLOSE else "weaker" if tvd <= FAR else "broken"


def within(figure: Mapping[str, float]) -> str:
    """A distance with its noise: half of the interval in which it is 19 times out of 20."""
    return f"{percent(figure['tvd'])} ± {percent(2 * figure['noise'])}"


def clear(figure: Mapping[str, float]) -> bool:
    """Whether a distance stands above its noise."""
    return figure["tvd"] > 2 * figure["noise"]


def _paid_lead(audit: Mapping[str, Any], domain: Domain) -> str:
    paid = audit.get("evaluation")
    if not paid:
        return ""
    lines = []
    every = {"tvd1": list(paid.get("columns", {}).values())}
    every |= {"tvd2": paid.get("pairs", []), "tvd3": paid.get("triples", [])}
    for key, what in (
        ("tvd1", "a column"),
        ("tvd2", "a pair of columns"),
        ("tvd3", "three columns together"),
    ):
        if key in paid:
            mean = {"tvd": paid[key]["mean"], "noise": paid[key]["noise"]}
            words = f"For {what} to be as in the real table, {within(mean)} of the rows would have to change"
            worst = max(every[key], key=lambda line: line["tvd"], default=mean)
            rest = f"of the worst, {within(worst)}" if clear(worst) else "no single one is above its noise"
            lines.append(f"{words} on average; {rest}.")
    lines += _worst_mean(paid.get("means", {}), domain)
    means = [
        {"tvd": paid[key]["mean"], "noise": paid[key]["noise"]} for key in ("tvd1", "tvd2") if key in paid
    ]
    state = _state(max(mean["tvd"] for mean in means))
    if state == "holds" and any(mean["tvd"] + 2 * mean["noise"] > FAR for mean in means):
        state = "unclear"
    said = {
        "unclear": "Measured and paid for, but the noise is too large to tell how close it is.",
        "holds": "Measured and paid for: columns and pairs are close to the real ones.",
        "weaker": "Measured and paid for: columns or pairs differ from the real ones.",
        "broken": "Measured and paid for: columns or pairs are far from the real ones.",
    }[state]
    kind = "weaker" if state == "unclear" else state
    return f'<div class="box {kind}">{paragraph(said, "lead")}{items(lines)}</div>' + paragraph(
        f"Epsilon {paid['epsilon']} of the budget was spent on asking how far the real rows are from tables "
        f"of the synthetic ones. ± is twice the standard deviation of the noise. Up to {percent(CLOSE)} is "
        f"called close, above {percent(FAR)} far.",
        "small",
    )


def _worst_mean(means: Mapping[str, Any], domain: Domain) -> Iterable[str]:
    """The mean that is farthest off, in its unit, if it is not within its noise."""
    known = {column.name: column for column in domain}
    off = {name: line for name, line in means.items() if name in known}
    if not off:
        return
    name = max(off, key=lambda name: abs(off[name]["error"]) / max(off[name]["standard_deviation"], 1e-12))
    error, noise = off[name]["error"], 2 * off[name]["standard_deviation"]
    if abs(error) <= 2 * noise:  # the largest of many: twice what is asked of one
        yield "No mean of a column of numbers is clearly off."
        return
    how = "too high" if error > 0 else "too low"
    amount = f"{in_units(min(1.0, abs(error)), known[name])} ± {in_units(noise, known[name])}"
    yield f"The mean of “{name}” is {how} by {amount}."


def in_units(part: float, column: Any) -> str:
    """A part of a column's declared range in its own unit."""
    span = float(column.upper) - float(column.lower)
    if column.type == "ordinal":
        return f"{number(part * (column.size - 1))} categories"
    if column.type == "date":
        return f"{number(part * span)} days"
    if column.type == "datetime":
        return f"{number(part * span / 3.6e9)} hours"
    return number(part * span)


def _paid_tables(audit: Mapping[str, Any]) -> str:
    """Every figure that was paid for, worst first."""
    paid = audit.get("evaluation")
    if not paid:
        return ""
    found: list[tuple[str, Mapping[str, float]]] = list(paid.get("columns", {}).items())
    for key in ("pairs", "triples"):
        found += [(" × ".join(line["columns"]), line) for line in paid.get(key, [])]
    found.sort(key=lambda line: -line[1]["tvd"])
    above = [(name, line) for name, line in found if clear(line)]
    words = {"holds": "close", "weaker": "differs", "broken": "far"}
    rows = [(name, within(line), words[_state(line["tvd"])]) for name, line in above[:MOST_TABLES]]
    more = len(above) - len(rows)
    rest = paragraph(f"And {more:,} more with smaller errors, in the audit.", "small") if more else ""
    unclear = [name for name, line in found if not clear(line)]
    if unclear:
        rest += facts([("Errors that are not above their noise", few(unclear))])
    head = ("columns", "rows that would have to change", "which is")
    listed = table(head, rows, [1]) if rows else ""
    return f"<h3>Errors that were measured and paid for, worst first</h3>{listed}{rest}"
