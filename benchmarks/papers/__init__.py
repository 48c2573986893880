"""The papers' own experiments, made again: one module a paper, its figures beside ours."""
