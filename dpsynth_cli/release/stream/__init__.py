"""Online release: charged once, fed push by push, and a snapshot whenever one is due.

stream       push, undo, publish, status          start        its beginning, and the one charge
place        what is a stream at all; its state as the ledger knows it
step         one push: when to count, what to count, on raw counts
units        which rows of a push are read, where persons are protected
snapshot     a release from noisy counts alone, for publishing and for verifying
window       what arrived in the last days        published    what may have been seen already
status       where it stands, in public words
"""
