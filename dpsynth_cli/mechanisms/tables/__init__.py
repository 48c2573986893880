"""Tables that belong together: parents by one model, their children by others that are given the parents.

families    parents with places for their children
"""
