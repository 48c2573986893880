"""Conclusions from a release: estimates with intervals, from its public transcript alone.

    language     the text of a query: mean(income) by sex, income ~ age + sex
    statistics   a query on a table: one number a group or coefficient
    groups       values of columns that may be groups, and names in backquotes
    quantiles    weighted quantiles of groups
    regression   least squares and logistic regressions, weighted
    tables       the counts that the transcript has, each with its noise
    measured     what follows from counts by linear algebra: exact noise, no model
    cells        counts of rows, from cells that a condition holds in, leaves out or cuts
    empty        rows for cells that were measured and have no released row
    simulate     the mechanism again on a given table, with noise that may be seeded
    bootstrap    simulated releases of the released table: how far their answers are off
    unknown      what no answer tells: where in a cell values are, pairs that were not counted
    relations    which pairs of columns were counted, looked at, assumed
    query        one query, answered the best way that there is
    replicates   tables for other people's code, and the rule that combines their answers

No room here sees a real row, a ledger or privacy noise: everything is post-processing, and costs nothing.
"""
