"""Raw counts of streams, which never leave this folder but as noisy answers.

leaves               raw counts of a piece
factorisation        which sums each release measures, and the longest column: public
blocks               raw counts and noisy sums of all releases, in few blocks
release_prices       what a release's counts cost an event over its whole life
prefix_counts        counts of everything so far, with noise
coded_rows           rows of mixed columns, until the tables are chosen that they are counted in
table_counters, table_prices    tables of mixed columns counted on from release to release; what that costs
epoch                columns and tables of mixed columns, for as long as a choice of them stands
step                 one push: count, measure a release, check segments
state, packing       the file between two pushes, and its place in the ledger
counting, dynamic_partition    sparse counting as printed (Algorithms 10 to 12), corrected
"""
