"""`sum_over`: the exact integer sums of questions over all rows."""
