"""The base of the DoFns that run the engine: it is loaded once per process and shared by all of them."""

import apache_beam as beam
from apache_beam.utils.shared import Shared

from model_runtime.devices import RouteConfig
from model_runtime.engine import SpeechEngine


class _EngineFn(beam.DoFn):
    """Gives its subclasses `self.engine`, loaded at setup.

    The DoFn itself holds only the recipe's name (or path) and the route, so it can be pickled and built where there
    are no models and no devices.
    """

    def __init__(self, recipe: str, route: RouteConfig, defer: bool = False, shared: Shared | None = None) -> None:
        """Takes what SpeechEngine.load takes, and the handle of another step that loads the same."""
        super().__init__()
        self._recipe = recipe
        self._route = route
        self._defer = defer
        self._shared = shared or Shared()

    def setup(self) -> None:
        """Loads the engine, or takes the one that another copy of this DoFn has loaded in this process."""
        self.engine: SpeechEngine = self._shared.acquire(self.load_engine)

    def load_engine(self) -> SpeechEngine:
        """Loads the engine; called once per process."""
        return SpeechEngine.load(self._recipe, self._route, self._defer)
