# Every target does the whole set-up that it needs by itself; second runs reuse what the first set up.
.PHONY: demo test check test-tflite-runtime benchmark setup clean

PYTHON_ENV = .venv/bin/python

demo:
	@test -d .venv || echo "the first run takes about ten minutes and 5 GB on disk; README.md says for what"
	deploy/setup.sh
	deploy/kafka.sh fetch
	deploy/prism.sh
	deploy/whisper.sh || echo "the demonstration goes on without sentences"
	$(PYTHON_ENV) -m pipelines.demo

test: setup check
	deploy/kafka.sh fetch
	deploy/prism.sh
	deploy/flink.sh fetch
	$(PYTHON_ENV) -m pytest -n 2 --ignore=tests/streaming --ignore=tests/flink tests
	$(PYTHON_ENV) -m pytest tests/streaming tests/flink
	$(MAKE) test-tflite-runtime

# The same engine on the other runtime: its tests, those on a delegate, and the batch job.
test-tflite-runtime:
	deploy/setup.sh tflite-runtime
	.venv-tflite-runtime/bin/python -m pytest -n 2 tests/model_runtime tests/native tests/pipelines/test_batch.py

check: setup
	$(PYTHON_ENV) -m ruff format --check .
	$(PYTHON_ENV) -m ruff check .
	$(PYTHON_ENV) -m mypy

benchmark: setup
	deploy/kafka.sh fetch
	deploy/prism.sh
	$(PYTHON_ENV) -m benchmarks.speed
	$(PYTHON_ENV) -m benchmarks.batch

setup:
	deploy/setup.sh

clean:
	rm -rf .venv .venv-tflite-runtime .venv-training .venv-peers .venv-faster-whisper build dist *.egg-info
