"""The reference's rules once more, from their description alone: short, slow, with recursion and no index.

Shares no code with `trainer_export.traces`; random traces have to come out the same from both.
"""
