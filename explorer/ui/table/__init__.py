"""Tables in HTML: sortable, filterable, usable from the keyboard."""

from explorer.ui.table.table import CandidateTable, NearMissTable, SiteTable

__all__ = ["CandidateTable", "NearMissTable", "SiteTable"]
