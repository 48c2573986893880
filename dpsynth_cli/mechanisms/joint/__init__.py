"""A joint model of all columns: the tables that are worth their noise, and rows that keep them.

First single columns, then for every pair how far its table is from independence (one number a pair, see
`Misfit`): a maximum spanning forest of links is counted (Chow and Liu 1968), strong ones once more and
finer. What that model does not explain is asked for again, and the pairs that are worth it are counted;
with enough rows and budget triples too. With strata, tables are by class or of all classes together,
whichever is worth more. Of columns of two values only what their sums leave open is asked
(`characters.py`). Every estimate goes from what the model expects to what was counted as far as its noise
allows. Rows are drawn column by column (`chain.py`). As epsilon grows more tables are counted, and finer
ones; what needs tables of four columns and more (five of two values) stays out of reach. Where columns have
few combinations in all there is one model of all of them instead (`cube.py`), or, where noise is next to
nothing, their counts (`whole.py`).

    ladder       a column at several resolutions        choice      which tables, and how fine
    frame        all columns, masses, rules             estimates   from noisy tables
    columns      the first questions                    model       all that was counted, and its chain
    characters   columns of two values                  steps, chain   one column given others
    survey       questions about tables                 rows        blocks of rows
    missing      values that are missing together       fused, feedback   how a block is drawn
    enough       whether noise would hide all links
    cube         every combination in one model         cube_plan   what is asked for it
    residuals    what answers say of them               cube_rows   rows of it
    whole        every combination, counted
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms import marginals
from dpsynth_cli.mechanisms.joint import choice, cube, whole
from dpsynth_cli.mechanisms.joint.chain import Chain
from dpsynth_cli.mechanisms.joint.columns import ask_columns
from dpsynth_cli.mechanisms.joint.enough import few_rows, in_words, rows_for_links, shows, weights_of
from dpsynth_cli.mechanisms.joint.estimates import combined, independent
from dpsynth_cli.mechanisms.joint.frame import Frame, Scope
from dpsynth_cli.mechanisms.joint.missing import ask_missing
from dpsynth_cli.mechanisms.joint.model import Evidence
from dpsynth_cli.mechanisms.joint.rows import drawing
from dpsynth_cli.mechanisms.joint.survey import Gap, Survey
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.mechanisms.shared.sizes import sizes_and_rest
from dpsynth_cli.questions import Ask, CellCounts, Cells, Model, Question
from dpsynth_cli.shares import divide

FINER, TRIPLES, INTERACTIONS, LOOK = 0.25, 0.12, 0.45, 0.05  # of what is left of the share of pairs
BY_CLASS = 1.02  # tables by class keep more than pairs show: their worth counts for so much
MISSING = Fraction(1, 40)  # of the share of pairs, for which values are missing together
REPEATED = Fraction(1, 8)  # of the share of pairs, at most, for values that many rows have
CLEAR = 0.035  # noise of a triple's gap, as a part of the rows, below which triples are looked at
MOST_CELLS = 2**25  # of all pairs that are looked at, and all classes
MOST_CATEGORIES = 2**14  # of a column


@dataclass(frozen=True)
class Params:
    """Nothing to set: impossible pairs are in the domain."""


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    sizes, rest = sizes_and_rest(ask, omega, split)
    rules = Rules(omega)
    weights = weights_of(split, few_rows(ask, omega, sizes))
    model = whole.run(ask, omega, sizes, rest, rules)
    if model is not None:
        return model
    if cube.takes(omega):
        model = cube.run(ask, omega, sizes, rest, weights, rules)
        if model is not None:
            return model
    columns, misfit, links, pairs = divide(rest, list(weights.values()))
    looks = divide(misfit, [1, 1])
    d = len(omega.modelled)
    enough = rows_for_links(ask, omega, rest, split)
    if not shows(ask, d * (d - 1) // 2, sizes, looks[0]):
        if not rules:
            model = marginals.independent(ask, omega, sizes, rest, notes=(in_words(enough),))
            return replace(model, facts=model.facts | {"links_from_rows": enough})
        alone, _ = ask_columns(ask, omega, sizes, rest, rules)
        return _model(omega, Evidence(alone, []), rules, enough, (in_words(enough),))

    # Columns: a private marginal each, at several resolutions.
    frame, spent = ask_columns(ask, omega, sizes, columns, rules, REPEATED * pairs)
    pairs -= spent
    frame, spent = ask_missing(ask, omega, frame, MISSING * pairs)
    pairs -= spent
    one = Question("columns", CellCounts(Cells(())), columns / len(frame.ladders), omega.strata)
    known = Evidence(frame, [ask.sd(one) ** 2] * len(frame.ladders))
    by_class = explored(ask, omega, known, looks, links, pairs)
    return _model(omega, known, rules, enough, by_class=by_class)


def explored(
    ask: Ask, omega: Domain, known: Evidence, looks: Sequence[Fraction], links: Fraction, pairs: Fraction
) -> bool:
    """Count the tables that are worth it, for shares of two looks, of links and of pairs; whether tables are
    by class."""
    frame, given = known.frame, [] if known.siblings is None else known.siblings.given
    scopes = pair_scopes(frame, given)
    if not scopes:
        scopes = [((0, 1), (frame.coarse[0], frame.coarse[1]))]

    # Links: a forest by how far pairs are from independence; strong ones once more, finer.
    survey, gaps, noise = look_at_pairs(ask, omega, frame, scopes, looks[0], links + pairs)
    forest = choice.forest(gaps, noise, len(frame.ladders))
    chosen = choice.worthwhile(survey, {scope: gaps[scope] for scope in forest}, links, choice.LINKED)
    chosen = chosen or [max(scopes, key=lambda scope: gaps[scope].beyond)]
    known.links = survey.count("links", chosen, links)
    known.learn(known.links)
    estimated = known.estimated_links()
    strong = choice.strong(estimated)
    finer = choice.finer(survey, estimated, strong, FINER * float(pairs))
    if finer:
        part = FINER * len(finer) / len(strong)
        again, pairs = divide(pairs, [part, 1 - part])
        counted = survey.count("links", list(finer.values()), again, even=True)
        known.finer = dict(zip(finer, counted, strict=True))

    # Pairs and larger tables: where the model of the links is far from the rows.
    chain, _ = known.fit(scopes)
    gaps_left, _ = survey.gaps({scope: chain.expected[scope] for scope in scopes}, looks[1])
    _count_more(survey, known, scopes, gaps, gaps_left, pairs)
    return survey.by is not None


def look_at_pairs(
    ask: Ask, omega: Domain, frame: Frame, scopes: list[Scope], look: Fraction, share: Fraction
) -> tuple[Survey, dict[Scope, Gap], float]:
    """How far pairs are from independence in each class. Tables are looked at by class and of all classes
    together; those that are worth more for the share will be counted."""
    expected = {scope: independent(frame, scope) for scope in scopes}
    survey = Survey(ask, omega, frame)
    if not omega.strata:
        return survey, *survey.gaps(expected, look)
    pooled = Survey(ask, omega, frame, pooled=True)
    by_class, together = survey.gaps(expected, look / 2), pooled.gaps(expected, look / 2)
    if choice.worth(pooled, together[0], share) > BY_CLASS * choice.worth(survey, by_class[0], share):
        return pooled, *together
    return survey, *by_class


def pair_scopes(frame: Frame, given: Sequence[int] = ()) -> list[Scope]:
    """All pairs of columns that have more than one cell, at the level they are looked at; not of two that
    rows are drawn given."""
    wide = [j for j, own in enumerate(frame.ladders) if own.cells > 1]
    pairs = [(i, j) for i, j in combinations(wide, 2) if i not in given or j not in given]
    return [((i, j), (frame.coarse[i], frame.coarse[j])) for i, j in pairs]


def _count_more(
    survey: Survey,
    known: Evidence,
    scopes: list[Scope],
    gaps: Mapping[Scope, Gap],
    gaps_left: Mapping[Scope, Gap],
    share: Fraction,
) -> None:
    """Pairs that are worth it; characters of several columns; triples where the model of pairs is far off.
    What nothing is worth is spent on counting the same again."""
    linked = {one.scope[0] for one in known.links}
    three = choice.triples(survey, gaps, 5)
    look, without = divide(share, [LOOK, 1 - LOOK])
    deep = choice.triples_show(survey, len(three), look, CLEAR)
    share = without if deep else share
    several = choice.interactions(survey, gaps, share * Fraction(2, 5))
    if several:
        part = TRIPLES / 2 if deep else INTERACTIONS
        share, signs = divide(share, [1 - part, part])
    if deep:
        share, larger = divide(share, [1 - TRIPLES, TRIPLES])
    chosen = choice.worthwhile(survey, {s: gaps_left[s] for s in scopes if s[0] not in linked}, share)
    _count(survey, known, "pairs", chosen, share)
    if several:
        counted = survey.count("triples", several, signs)
        orders = sorted({len(one.scope[0]) for one in counted})
        known.more += [[one for one in counted if len(one.scope[0]) == order] for order in orders]
    if deep:
        chain, _ = known.fit(three)
        found, _ = survey.gaps({scope: chain.expected[scope] for scope in three}, look)
        _count(survey, known, "triples", choice.worthwhile(survey, found, larger), larger)
        known.learn_pairs()


def _count(survey: Survey, known: Evidence, step: str, scopes: list[Scope], share: Fraction) -> None:
    """Count these tables; if there are none, the pairs or the links again."""
    if scopes:
        counted = survey.count(step, scopes, share)
        known.learn(counted)
        if step == "pairs":
            known.pairs = counted
        else:
            known.more.append(counted)
        return
    before = known.pairs or known.links
    counted = survey.count(step, [one.scope for one in before], share)
    known.learn(counted)
    both = [combined(one, other) for one, other in zip(before, counted, strict=True)]
    known.pairs, known.links = (both, known.links) if known.pairs else ([], both)


def _model(
    omega: Domain,
    known: Evidence,
    rules: Rules,
    enough: int | None,
    notes: tuple[str, ...] = (),
    by_class: bool = False,
) -> Model:
    chain, _ = known.fit()
    facts = facts_of(known, chain) | {"links_from_rows": enough}
    if omega.strata:
        facts["tables_by_class"] = by_class
    frame = known.frame
    return Model(round(float(frame.totals.sum())), drawing(omega, frame, chain, rules), notes, facts)


def facts_of(known: Evidence, chain: Chain) -> dict[str, Any]:
    """Which tables were counted, and in which order columns are drawn: from answers alone."""
    frame = known.frame
    names = [own.column.name for own in frame.ladders]
    kinds = {
        "links": known.links,
        "finer_links": list(known.finer.values()),
        "pairs": known.pairs,
        "triples": [one for kind in known.more for one in kind if not one.is_character],
    }
    facts: dict[str, Any] = {
        kind: [[names[j] for j in one.scope[0]] for one in counted] for kind, counted in kinds.items()
    }
    facts["interactions"] = sum(one.is_character for kind in known.more for one in kind)
    facts["missing_with"] = [[names[a], names[b]] for a, b in frame.implied]
    facts["order"] = [names[j] for j in chain.order]
    facts["cells"] = {own.column.name: own.cells for own in frame.ladders}
    return facts


def fits(omega: Domain, params: Params) -> list[str]:
    if not omega.modelled:
        return ["joint needs a column besides the strata"]
    found = []
    for column in omega.modelled:
        if column.categorical and column.codes * omega.classes > MOST_CATEGORIES:
            found.append(
                f"joint takes at most {MOST_CATEGORIES:,} categories of a column (times the classes of the "
                f"strata), and {column.name} has {column.codes * omega.classes:,}; join rare ones under "
                "`other`, leave the strata out, or use marginals"
            )
    d = len(omega.modelled)
    cells = d * (d - 1) // 2 * omega.classes * (17**2 if d < 40 else 9**2)
    if cells > MOST_CELLS:
        found.append(
            f"joint would look at {cells:,} cells of pair tables, and takes at most {MOST_CELLS:,}; release "
            "fewer columns, leave the strata out, or use marginals"
        )
    return found


MECHANISM = Mechanism(
    name="joint",
    summary="tables of two columns and more that are worth their noise, and rows that keep them all",
    suits="mixed or categorical tables (the usual choice), with strata if there is a label",
    citation=(
        "C. K. Chow, C. N. Liu: Approximating Discrete Probability Distributions with Dependence Trees. "
        "IEEE Trans. Inf. Theory 14, 1968; W. E. Deming, F. F. Stephan: On a Least Squares Adjustment of a "
        "Sampled Frequency Table When the Expected Marginal Totals Are Known. Ann. Math. Stat. 11, 1940; "
        "tables chosen as in K. Cai, X. Lei, J. Wei, X. Xiao: Data Synthesis via Differentially Private "
        "Markov Random Fields. VLDB 2021; residuals as in B. Barak et al.: Privacy, Accuracy, and "
        "Consistency Too. PODS 2007"
    ),
    run=run,
    params=Params,
    stages={"total": 0.005, "columns": 0.15, "misfit": 0.06, "links": 0.27, "pairs": 0.515},
    fits=fits,
    rounds=True,
)
