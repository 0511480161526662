"""Who runs in the benchmark."""

from typing import NamedTuple


class Candidate(NamedTuple):
    """name: for --only; title: its row; job: its module; flags: its own; live: whether it runs in every table, not only
    at full speed; bare: the candidate that is the same without checkpoints.
    """

    name: str
    title: str
    job: str
    flags: tuple[str, ...] = ()
    live: bool = True
    bare: str = ""


_PRISM = ("--runner=DirectRunner", "--streaming")

CANDIDATES = (
    Candidate("plain", "plain loop", "plain_job"),
    Candidate("prism", "unison-speech on Prism", "unison_job", _PRISM),
    Candidate("bytewax", "Bytewax", "bytewax_job"),
    Candidate("bytewax-recovery", "Bytewax with recovery", "bytewax_job", ("--durable",), live=False, bare="bytewax"),
    Candidate("quix", "Quix Streams with changelog", "quix_job", ("--durable",), bare="quix-unlogged"),
    Candidate("quix-unlogged", "Quix Streams without changelog", "quix_job", (), live=False),
)
