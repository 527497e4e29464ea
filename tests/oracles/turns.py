"""States before their turns, for tests of rotations."""

from __future__ import annotations

from typing import Any

import pytest

from caviar.engine.ascent.schedules.expansion.expanded import Expanded


def states_before_turns(model: Any, data: Any, **arguments: Any) -> tuple[list[Any], Any]:
    """Return the schedule and the state of each step before its turn, and the posterior."""
    seen = []
    original = Expanded._turned

    def turned(self, state, gained):
        seen.append((self, state))
        return original(self, state, gained)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Expanded, "_turned", turned)
        posterior = model.fit(data, **arguments)
    return seen, posterior
