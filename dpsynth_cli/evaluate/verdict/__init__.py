"""What an analyst would rely on, and whether it still holds: findings in words, worst first.

verdict            all findings, in their order     finding            one of them
column_findings    of columns by themselves         relation_findings  of columns together
"""
