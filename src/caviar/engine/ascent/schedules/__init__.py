"""Schedules, one in each module."""
