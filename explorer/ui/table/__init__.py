"""A table of candidates in HTML: sortable, filterable, usable from the keyboard."""

from explorer.ui.table.table import CandidateTable

__all__ = ["CandidateTable"]
