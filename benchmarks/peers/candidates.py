"""Who runs in the benchmark."""

from typing import NamedTuple

from benchmarks.peers.plain_session import CHECKPOINT_S
from pipelines.local_flink import FLAGS, is_fetched


class Candidate(NamedTuple):
    """name: for --only; title: its row; job: its module; flags: its own; live: whether it runs in every table, not only
    at full speed; bare: the candidate that is the same without checkpoints; on_flink: it needs a cluster.
    """

    name: str
    title: str
    job: str
    flags: tuple[str, ...] = ()
    live: bool = True
    bare: str = ""
    on_flink: bool = False


_PRISM = ("--runner=DirectRunner", "--streaming")
# What follows overrides the file.
_FLINK = (f"@{FLAGS}", f"--checkpointing_interval={CHECKPOINT_S * 1000:.0f}")
_UNCHECKED = (f"@{FLAGS}", "--checkpointing_interval=-1")

CANDIDATES = (
    Candidate("plain", "plain loop", "plain_job"),
    Candidate("prism", "unison-speech on Prism", "unison_job", _PRISM),
    Candidate("flink", "unison-speech on Flink", "unison_job", _FLINK, bare="flink-unchecked", on_flink=True),
    Candidate(
        "flink-unchecked", "unison-speech on Flink, no checkpoints", "unison_job", _UNCHECKED, live=False, on_flink=True
    ),
    Candidate("bytewax", "Bytewax", "bytewax_job"),
    Candidate("bytewax-recovery", "Bytewax with recovery", "bytewax_job", ("--durable",), live=False, bare="bytewax"),
    Candidate("quix", "Quix Streams with changelog", "quix_job", ("--durable",), bare="quix-unlogged"),
    Candidate("quix-unlogged", "Quix Streams without changelog", "quix_job", (), live=False),
)


def why_not(candidate: Candidate) -> str | None:
    """Gives why a candidate cannot run here; None where it can."""
    if candidate.on_flink and not is_fetched():
        return f"{candidate.title}, since Flink has not been fetched (deploy/flink.sh fetch)"
    return None
