"""Properties that are computed once, without the lock that Python before 3.12 takes at every first access.

The lock costs more than most expectations of a single number, and nothing needs it: what is cached is a function of a
frozen object, the same for every thread that computes it. Unlike those of Python they can be abstract.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 (the name of the one that it replaces)
        """A property that is computed at its first access and then an attribute of the instance.

        Parameters
        ----------
        function
            Returns the value for an instance.

        Examples
        --------
        >>> from caviar.families import Normal
        >>> q = Normal(0.0, 4.0)
        >>> "variance" in vars(q), float(q.variance), "variance" in vars(q)
        (False, 0.25, True)
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.__doc__ = function.__doc__
            self.__isabstractmethod__ = "__isabstractmethod__" in vars(function)

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: object, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value
