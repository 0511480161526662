"""One of the pool's workers: Beam's, without what no runner needs of it.

python -m pipelines.worker --endpoint localhost:40001 --id 1-1
"""

import argparse
import sys
from collections.abc import Sequence

from apache_beam.runners.worker.sdk_worker import SdkHarness

from pipelines.lean_worker import work_lean


def main(argv: Sequence[str] | None = None) -> int:
    """Works until the runner hangs up; gives the exit code."""
    parser = argparse.ArgumentParser("python -m pipelines.worker", description="Works for a runner of Beam's.")
    parser.add_argument("--endpoint", required=True, help="HOST:PORT of the runner's control service")
    parser.add_argument("--id", required=True, help="what the runner calls this worker")
    parser.add_argument("--state-cache-bytes", type=int, default=0, help="state that is kept, default: %(default)s")
    args = parser.parse_args(argv)
    # First: a bundle that has begun with a thread of its own must not be ended without one.
    work_lean()
    SdkHarness(args.endpoint, worker_id=args.id, state_cache_size=args.state_cache_bytes).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
