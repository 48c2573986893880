"""The metrics, in the data's own terms: cut at quantiles of the real column, in its spread and its units.

metrics      all by name, each with its formula; names: the names alone
cuts         columns cut into cells                      scales       codes on scales of the column's own
marginals    tables of one to five columns               search       the tables that differ most
quantiles    numbers by themselves                       groups       means by group
regressions  rank correlations, R^2 on all the rest      relations    what follows, what never occurs
moments      means and covariances                       propensity   how well rows are told from real ones
wasserstein  W1: on a line, in the plane, sliced         joint        exact W1 of three and more columns
matches      rows that equal a real one                  classifiers  train on synthetic, test on real
"""
