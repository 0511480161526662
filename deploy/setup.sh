#!/usr/bin/env bash
# Makes the project's Python environment with the locked versions. Done once; a second call only looks.
#
#   deploy/setup.sh                   .venv with ai-edge-litert (the default runtime)
#   deploy/setup.sh tflite-runtime    .venv-tflite-runtime with tflite-runtime 2.14 and numpy 1.26 (CPython 3.11 at most)
#   deploy/setup.sh training          .venv-training with TensorFlow, to make the models anew
#   deploy/setup.sh peers             .venv-peers with Bytewax and Quix Streams, for `python -m benchmarks.peers` alone
#
# Environment: PYTHON (python3). The last line printed is the environment's folder.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
kind="${1:-litert}"
python="${PYTHON:-python3}"
others=()

say() { echo "setup.sh: $*" >&2; }

case "$kind" in
  litert) venv="$root/.venv" constraints="$root/constraints.txt" extras="litert,test,lint,evaluate" ;;
  tflite-runtime) venv="$root/.venv-tflite-runtime" constraints="$root/constraints-tflite-runtime.txt" extras="tflite-runtime,test" ;;
  training) venv="$root/.venv-training" constraints="$root/constraints-training.txt" extras="litert,test,training" ;;
  peers) venv="$root/.venv-peers" constraints="$root/constraints-peers.txt" extras="litert" others=(bytewax quixstreams) ;;
  *) say "the kind must be litert, tflite-runtime, training or peers, got $kind"; exit 2 ;;
esac

if ! command -v "$python" >/dev/null; then
  say "$python is missing; install it with: apt-get install python3 python3-venv"
  exit 1
fi
if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))'; then
  say "Python 3.10 to 3.13 is needed, $python is $("$python" -V); name another with PYTHON=..."
  exit 1
fi

wanted="$(cat "$constraints" "$root/pyproject.toml" "$0" | sha256sum | cut -d' ' -f1)"
if [[ "$(cat "$venv/.setup-done" 2>/dev/null || true)" != "$wanted" ]]; then
  say "installing the $kind environment into $venv (a minute or two, once)"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c "$constraints" -e "$root[$extras]" "${others[@]}"
  "$venv/bin/python" -m pip check --disable-pip-version-check >&2
  echo "$wanted" >"$venv/.setup-done"
fi
echo "$venv"
