#!/usr/bin/env bash
# Makes Whisper's .tflite files from its published weights, once; a second call only looks.
#
#   deploy/whisper.sh [tiny.en|base] [VARIANTS]      tiny.en and "float32,dynamic" by default
#
# It installs TensorFlow into .venv-training (about 700 MB to download, 3 GB on disk, removed by `make clean`), fetches
# the weights (70 MB for tiny.en, 140 for base) and converts them: a few minutes in all. The models (206 MB for tiny.en,
# 390 for base) stay in ~/.cache/unison-speech/models, or in UNISON_MODELS.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
model="${1:-tiny.en}"
variants="${2:-float32,dynamic}"
folder="${UNISON_MODELS:-$HOME/.cache/unison-speech/models}/whisper-$model"

say() { echo "whisper.sh: $*" >&2; }

if [[ ! -f "$folder/card.yaml" ]]; then
  say "making whisper-$model: TensorFlow (3 GB in .venv-training) and a few minutes, once"
  venv="$("$root/deploy/setup.sh" training)"
  (cd "$root" && TF_CPP_MIN_LOG_LEVEL=3 "$venv/bin/python" -m training.import_whisper "$model" --variants "$variants")
fi
echo "$folder"
