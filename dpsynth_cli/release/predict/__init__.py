"""What a spec will give, before any data is read.

predict      errors, time and memory of one mechanism; candidates: all mechanisms side by side
plan         the epsilon of a target error        unit_worth   what `rows` of a unit does to noise and error
imagine      a release over a public table; imagine_tables: over several
family       the generated tables to predict on; dependence: how their columns hang together
like         a public table in their place, which is never the input
scaled_up    a table asked as if it had more rows; recode: its codes under other bounds
costs        processor time and memory
"""
