"""Jobs: configuration, build(pipeline, config) and main(argv)."""

import logging

# Beam warns, whenever it is imported, that it has no clients for BigQuery. No job needs them, and nobody can act on it.
logging.getLogger().addFilter(lambda record: "bigquery client libraries" not in record.getMessage())
