"""The main path: a spec and a table in, a synthetic table and its receipts out.

table                    one release of a table; groups: one without differential privacy
journal                  its durable record: charge, answers so far, what the ledger knows of them
stream                   init, push, publish; stream_step: when and what; stream_snapshot: from answers
synthesis                what follows from answers alone: model, file, public audit
transcript, audit        what is kept and told; write: rows to files; publish: all files in place together
replay, verify, sample   the same again from a transcript, without the data
predict, imagine         errors, time and memory before any data is read
registry_entry           the release as registries want it
"""
