"""caviar: variational inference by coordinate ascent, derived from a stated model.

State a conditionally conjugate model, hand over data, and get the best mean-field posterior with its
evidence lower bound. Names are loaded when they are first used; ``import caviar`` itself loads nothing
else.
"""

from __future__ import annotations

from importlib import import_module

from ._version import __version__ as __version__

_HOMES: dict[str, str] = {}
_RENAMED: dict[str, tuple[str, str]] = {}
"""Old public name -> the new one, and the version in which the old one will be gone: a minor version after the first
release that has the new one."""


def _homes() -> dict[str, str]:
    """Return the module of each public name, and of each public module its own name: what ``__init__.pyi`` imports."""
    if not _HOMES:
        stub = import_module("ast").parse(import_module("pkgutil").get_data(__name__, "__init__.pyi"))
        imports = [(own.name, statement.module) for statement in stub.body[1:] for own in statement.names]
        # at once: other threads may ask, too
        _HOMES.update({name: f".{module or name}" for name, module in imports})
    return _HOMES


def __getattr__(name: str) -> object:
    """Load a public name, or a public module, when it is first asked for."""
    if name in _RENAMED:
        return _under_its_new_name(name, *_RENAMED[name])
    if name == "__all__":
        return sorted(own for own, home in _homes().items() if home != f".{own}")
    if name in _homes():
        home = import_module(_HOMES[name], __name__)
        value = globals()[name] = home if _HOMES[name] == f".{name}" else getattr(home, name)
        return value
    advice = import_module("._words_of_others", __name__).advice(name)
    message = f"module {__name__!r} has no attribute {name!r}{advice}"
    raise AttributeError(message, name=name, obj=import_module(__name__))


def _under_its_new_name(name: str, new: str, last: str) -> object:
    """Return what an old name means now, with a warning."""
    kind = import_module("._errors", __name__).RenamedWarning
    message = f"caviar.{name} is now caviar.{new}; the old name will be gone in version {last}"
    import_module("warnings").warn(message, kind, stacklevel=3)
    return __getattr__(new)


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes(), "__all__"})
