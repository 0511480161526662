#!/usr/bin/env bash
# Builds Prism, Beam's local runner for streams, with Go and prints the path of the program. Once: about 2 minutes.
#
#   deploy/prism.sh [VERSION]      VERSION of the Beam SDK; by default the one that the set-up installs
#
# It is kept as ${UNISON_CACHE:-~/.cache/unison-speech}/prism-VERSION-mended-2/prism, where pipelines.streaming looks: a
# script that starts Prism in a session of its own, so that a Ctrl-C in the terminal reaches only the job, which then ends
# its open sessions before it stops Prism.
#
# Mended in Prism 2.77:
#   * When a bundle's output is complete, it waits for the worker's answer in a loop that never sleeps. That takes a core
#     from the worker for as long as the worker takes to answer: in a live job, four fifths of Prism's time.
#   * It lets no worker keep a state from one bundle to the next, so that each session is asked for with each chunk. It
#     has one worker, and a job fails with its first bundle that fails: what the worker wrote last is what there is.
#   * It prints each request for a state into a log line that nobody sees.
set -euo pipefail

CACHE="${UNISON_CACHE:-$HOME/.cache/unison-speech}"
CONSTRAINTS="$(cd "$(dirname "$0")/.." && pwd)/constraints.txt"

fail() { echo "prism.sh: $*" >&2; exit 1; }

# mend FILE SCRIPT: lets sed change a file; fails if it finds nothing to change.
mend() { sed -i.before "$2" "$1" && ! cmp -s "$1" "$1.before"; }

# mend_all: mends the sources in this folder, Prism's internal ones.
mend_all() {
  local kind='fnpb.ProcessBundleRequest_CacheToken_UserState' list='[]*fnpb.ProcessBundleRequest_CacheToken'
  # A channel that has been closed is always ready; one that is nil never is.
  mend stage.go 's/^\t*case <-dataReady:$/&\n\t\t\tdataReady = nil/' &&
    mend worker/bundle.go "s/^\t*ProcessBundleDescriptorId: b.PBDID,\$/&\n\
      CacheTokens: $list{{Type: \&${kind}_{UserState: \&$kind{}}, Token: []byte(\"prism\")}},/" &&
    mend worker/worker.go '/^\t*slog.Debug("StateRequest_Get",.*)$/d'
}

# build_mended VERSION FOLDER: puts the program into FOLDER/prism.
build_mended() {
  local source
  source="$(go mod download -json "github.com/apache/beam/sdks/v2@v$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')" &&
    mkdir "$2/source" && cp -r "$source/go" "$source/go.mod" "$source/go.sum" "$2/source" && chmod -R u+w "$2/source" &&
    (cd "$2/source/go/pkg/beam/runners/prism/internal" && mend_all) &&
    (cd "$2/source" && go build -o "$2/prism" ./go/cmd/prism) &&
    rm -r "$2/source"
}

version="${1:-}"
if [[ -z "$version" ]]; then
  version="$(sed -n 's/^apache-beam==//p' "$CONSTRAINTS" 2>/dev/null)"
  [[ -n "$version" ]] || fail "no version of apache-beam stands in $CONSTRAINTS; give it as an argument"
fi
bin="$CACHE/prism-$version-mended-2"
if [[ ! -x "$bin/prism" ]]; then
  command -v go >/dev/null || fail "go is missing; install Go 1.22 or newer (apt-get install golang, or https://go.dev/dl)"
  mkdir -p "$bin"
  echo "prism.sh: building Prism $version with Go (about 2 minutes, once)" >&2
  build="$(mktemp -d "$bin/build.XXXXXX")"
  trap 'rm -rf "$build"' EXIT
  build_mended "$version" "$build" >"$bin/build.log" 2>&1 || {
    tail -n 20 "$bin/build.log" >&2
    fail "Prism could not be built; the output is in $bin/build.log"
  }
  cat >"$build/start" <<'START'
#!/bin/sh
if command -v setsid >/dev/null; then exec setsid "$0.bin" "$@"; fi
exec "$0.bin" "$@"
START
  chmod +x "$build/start"
  # A rename is whole or not at all, also when two builds run at the same time.
  mv "$build/prism" "$bin/prism.bin"
  mv "$build/start" "$bin/prism"
fi
echo "$bin/prism"
