"""The one tree of errors that the product raises on purpose.

    SpeechError
    ├── ConfigError          a configuration, recipe, card or route is wrong; says the field's path
    ├── AudioError           audio cannot be used: coding, rate, channels, samples
    ├── ModelError           a model file or its card is refused at load
    ├── DeviceError          a route says "refuse" and the device cannot be had
    ├── StateError           frozen state cannot be thawed: damaged, or of another model
    ├── WorkerError          a process that runs models dies on its input, takes too long, or does not start
    └── LockedError          another run is writing to the same place

Anything else that is raised is a bug and is left to crash the job. `retriable` says whether the same call may
succeed later without a change of its input.
"""


class SpeechError(Exception):
    """The root of all errors raised on purpose."""

    retriable = False


class ConfigError(SpeechError):
    """A configuration value is wrong; the message names the field's path, the value and what is allowed."""


class AudioError(SpeechError):
    """Audio cannot be used; the message names the value and the bound."""


class ModelError(SpeechError):
    """A model file or card is refused; the message names the path and the reason."""


class NotImportedError(ModelError):
    """A model that users import themselves is not there yet; the message says how to."""


class DeviceError(SpeechError):
    """A device cannot be had and the route forbids falling back."""

    retriable = True


class StateError(SpeechError):
    """Frozen state cannot be thawed; the message names what differs."""


class WorkerError(SpeechError):
    """A process that runs models died on its input, took too long, or could not start; the message says which."""


class LockedError(SpeechError):
    """Another run is writing to the same place; the message names it."""

    retriable = True


def check_within(field: str, value: float, low: float, high: float) -> None:
    """Raises the ValueError, with name, bounds and value, that a configuration's field must not have."""
    if not low <= value <= high:
        raise ValueError(f"{field} must be {low}..{high}, got {value}")
