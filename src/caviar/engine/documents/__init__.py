"""Documents as rows of data: a block of them is summarised with proportions and topics of tokens as local factors.

It replaces what the compiler derives for the same statement with a row a token, wherever :func:`pattern.pattern_of`
recognises it.
"""
