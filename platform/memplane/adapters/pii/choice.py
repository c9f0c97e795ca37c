"""What finds personal data: the own patterns, or Presidio beside them."""

import functools

from memplane.domain.errors import SettingsError
from memplane.domain.privacy import pii
from memplane.settings import Settings


def finder_of(settings: Settings) -> pii.Finder:
    """What finds personal data, as the operator chose.

    Raises:
        SettingsError: Presidio is asked for and not installed, or its model is not.
    """
    if settings.pii == "own":
        if settings.pii_model is not None:
            raise SettingsError("MEMPLANE_PII_MODEL is for MEMPLANE_PII=presidio; set both or neither")
        return pii.find
    return _presidio(settings.pii_model)


@functools.cache
def _presidio(model: str | None) -> pii.Finder:
    from memplane.adapters.pii.presidio import presidio  # noqa: PLC0415 - loaded when it is chosen

    return presidio(model)
