"""Which language model is asked: the one that the operator named, or none."""

import time

from memplane.adapters.llm.breaker import Breaker
from memplane.application.jobs.inference.language_model import Model
from memplane.domain.errors import SettingsError
from memplane.settings import Settings


def model_of(settings: Settings) -> Model | None:
    """The model of the settings behind its circuit breaker; ``None`` where none is named.

    Nothing is asked of it yet: a server starts while its model is down.

    Raises:
        SettingsError: what asks it is not installed, or the settings name none that can be asked.
    """
    if settings.model is None:
        return None
    # loaded when a model is named: the library is an extra, and takes two seconds
    try:
        from memplane.adapters.llm.endpoint import Endpoint  # noqa: PLC0415 - see above
        from memplane.adapters.llm.pydantic_ai_model import Bounds, PydanticAiModel  # noqa: PLC0415 - see above
    except ImportError as error:
        raise SettingsError("MEMPLANE_MODEL needs `pip install 'memplane[models]'`") from error
    endpoint = Endpoint(settings.model, settings.model_url, settings.model_key)
    bounds = Bounds(settings.model_timeout, settings.model_attempts, settings.model_max_output)
    return Breaker(PydanticAiModel(endpoint, bounds), time.monotonic)
