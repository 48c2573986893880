"""Pure arrays, tested like a library; nothing here knows a table.

partition, scale, consistency, histogram, spikes       trees and histograms of counts, made consistent
lattice, transport, isotonic                           measures on a lattice, exact minimum-cost flow
forest, pairs, ratios, exchange                        spanning forests and tables of pairs
exact, residual, loglinear                             the same bits everywhere; models of all combinations
projection, spectrum                                   simplex and norms, eigenvalues above noise
conditional, selection, systematic, settled            proportional fitting, choice, even draws, few rows
moved_rows                                             how far a measure on a tree is from noisy counts
sampling, decks                                        whole numbers from masses, rows dealt at random
"""
