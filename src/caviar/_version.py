"""The version, in one place: the build reads it from here."""

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Return the versions of what the bits of a result depend on."""
    from importlib.metadata import version

    return {"caviar": __version__, **{name: version(name) for name in ("numpy", "scipy")}}
