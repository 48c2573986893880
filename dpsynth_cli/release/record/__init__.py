"""What is durable while a release runs, and what to do with it afterwards.

transcript   what was asked and answered, in order: it is the release
journal      the charge, the answers so far, and what the ledger knows of them
again        the same command once more: a paid and unfinished release goes on, or a new one begins
unfinished   what a crash or Ctrl-C left beside an output
status       all that is under way, and what to type next
"""
