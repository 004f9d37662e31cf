"""The bill of a fusion group: a stacked bar against the buffer, and lists of what fills it."""

from explorer.ui.bill.bill import Bill

__all__ = ["Bill"]
