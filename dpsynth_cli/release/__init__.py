"""The main path: a spec and a table in, a synthetic table and its receipts out.

table                    one release of a table; groups: one without differential privacy
journal                  its durable record: charge, answers so far, what the ledger knows of them
stream                   init, push, publish; stream_step: when and what; stream_snapshot: from answers;
                         stream_status: where it stands
budget, paid             what it may spend; the part of it for errors that may be published
junk                     what the steward is told of cells that are not as declared
synthesis                what follows from answers alone: model, file, public audit
transcript, audit        what is kept and told; guarantee: the promise; write: rows to files;
                         publish: all files in place together
replay, verify, sample   the same again from a transcript, without the data
predict, imagine, costs  errors, time and memory before any data is read
family, dependence       the generated tables that errors are predicted on; like: what is no public one
candidates, plan         mechanisms side by side; the epsilon of a target error
registry_entry           the release as registries want it
"""
