"""Mechanisms: plain functions of `ask`. POST-PROCESSING: no row, no file, no noise of their own.

registry                                              finds them: a module or a folder with a MECHANISM
marginals                                             one file
factor/, joint/, lowdim/, microaggregation/, online/, pmm/, psmm/
                                                      a folder each; `printed.py`: the paper as printed
shared/                                               what two or more of them are made of
"""
