"""Moves that schedules make beyond the updates: acceleration, ways out of saddle points, splits and merges."""
