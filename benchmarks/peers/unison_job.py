"""This job, as it is; with `none` for a recipe, NoModel stands in for the engine in it. Other arguments are Beam's."""

import sys

from benchmarks.peers.no_model import NONE, VARIANTS, without_model
from benchmarks.peers.plain_session import job_options
from pipelines import streaming


def main() -> int:
    """Runs until it is ended; writes what the peers write, partials, finals and ends of sessions."""
    options, beam_flags = job_options()
    settings = {
        "kafka.bootstrap_servers": options.servers,
        "kafka.topics.audio": options.audio,
        "kafka.topics.results": options.results,
        "kafka.topics.dead_letters": f"{options.audio}-dlt",
        "kafka.start": "earliest",
        # Idle sessions are measured, not ended.
        "session.idle_timeout_ms": "3600000",
        "results.segments": "false",
        "results.enhanced": "false",
        "stats.write": "false",
        "route.variants": f"[{', '.join(VARIANTS)}]",
    }
    if options.model == NONE:
        with_model = streaming.make_inference
        streaming.make_inference = lambda config: without_model(with_model(config))
    else:
        settings["recipe"] = options.model
    return streaming.main([*beam_flags, *(f"--set={name}={value}" for name, value in settings.items())])


if __name__ == "__main__":
    sys.exit(main())
