"""What the steward does not know, found for a share of the budget before the mechanism runs.

outer        what is declared of a private column while it is looked for
bounds       the ends of numbers, dates and times: octaves first, then even cells
categories   which of the candidates there are
steps        what numbers are rounded to
noise        how far noise reaches, at a stated probability
find         all private columns of a domain, in rounds, and what is said of it

Post-processing of noisy answers, as a mechanism is. Compared with what is published (docs/privacy.md).
"""
