"""A machine that fails: the real code of releases, streams and copies of ledgers on a simulated disk, clock
and ledger, with two to six processes, in an order that a schedule fixes.

    python -m tests.simulator --seed 7 --schedules 1000     # the first that fails is made small and printed
    python -m tests.simulator --seed 123 --schedules 1      # schedule 123 again
    python -m tests.simulator --schedules 1000000 --minutes 60 --log FILE    # as many as an hour has room for

scheduler    processes take turns; one step at a time; kills, Ctrl-C, power cuts
machine      what `dpsynth_cli.disk` does, on a disk that loses and tears what was not synced (files)
book         the place of a ledger: each transaction is there or is not
commands     what the processes do: the real commands, with noise that is never the same twice
invariants   what must hold, whatever happens
schedules    a schedule as data, drawn from a seed; made smaller while it fails
once         what is computed once and kept
world        one schedule, run; recovery: somebody finishes what there is; simulate: many of them
faults       mistakes that could be made in the code, each of which an invariant must see
"""
