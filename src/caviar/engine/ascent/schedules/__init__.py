"""Schedules other than one update of each global a pass."""
