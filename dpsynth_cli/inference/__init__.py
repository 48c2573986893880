"""Conclusions from a release: estimates with intervals, from its public transcript alone.

    language     the text of a query: mean(income) by sex, income ~ age + sex
    statistics   a query on a table: one number a group or coefficient
    checks       whether a query can be asked of the columns, and what to write instead
    groups       values of columns of numbers that may be groups
    quantiles    weighted quantiles of groups
    regression   least squares and logistic regressions, weighted
    tables       the counts that the transcript has, each with its noise
    measured     what follows from counts by linear algebra: exact noise, no model
    cells        counts of rows, from cells that a condition holds in, leaves out or cuts
    empty        rows for cells that were measured and have no released row
    sums         what answers say about released rows: noisy sums, and other noise of the same distribution
    calibration  weights of released rows that have the measured sums again
    inversion    intervals of quantiles, from the rows below the ends of cells
    weighted     a statistic of weighted rows, with its interval
    moments      means, spreads and products of columns, as sums over rows
    draws        weights that are never negative, for other noise in the answers
    simulate     the mechanism on a public table, with noise that may be seeded
    sampling     how much a statistic varies over tables of one population
    unknown      what no answer tells: where in a cell values are
    relations    which pairs of columns were counted, looked at, assumed
    answers      a number with its interval, or why it has none
    query        one query, answered the best way that there is
    replicates   tables for other people's code, and the rule that combines their answers

No room here sees a real row, a ledger or privacy noise: everything is post-processing, and costs nothing.
"""
