"""What two or more mechanisms are made of.

sizes        how many rows, in all or by class: asked first
focus        where in loose bounds rows are
oneway       private one-way marginals by class; oneway_plan: how a column is counted for one
attributes   a column in few cells, for tables of several columns
crossed      all pairs of attributes, with what marginals and rules say of them
drawing      rows class by class; pools: rows of cells made once, dealt to any number of rows
rules        pairs of values that no row can have
"""
