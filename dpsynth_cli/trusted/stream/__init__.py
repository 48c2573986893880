"""Raw counts of streams, which never leave this folder but as noisy answers.

leaves               raw counts of a piece, and what its rows have paid
step                 one push: count, close blocks, check segments
state                the file between two pushes, and its place in the ledger
counting, dynamic_partition    sparse counting as printed (Algorithms 10 to 12), corrected
"""
