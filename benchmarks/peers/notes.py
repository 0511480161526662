"""What stands at the end of docs/peers.md: where the cost of a chunk goes, and what was done about it."""

NOTES = """## Where this job's own cost goes

TO BE WRITTEN
"""
