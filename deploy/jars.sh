# Sourced by kafka.sh and flink.sh: how they speak, what they are told, how they get their jars, and how they end what runs.

say() { echo "${0##*/}: $*" >&2; }
fail() { say "$*"; exit 1; }

need() {
  command -v "$1" >/dev/null || fail "$1 is missing; install it with: apt-get install openjdk-17-jre-headless maven"
}

# fetch_jars WHAT POM FOLDER: lets Maven put the jars of a POM, and all that they need, into FOLDER/libs, once.
fetch_jars() {
  local what="$1" pom="$2" folder="$3" work
  if [[ -d "$folder/libs" ]]; then return; fi
  need java
  need mvn
  mkdir -p "$folder"
  work="$(mktemp -d "$folder/fetch.XXXXXX")"
  say "fetching $what with Maven, once, into $folder/libs"
  if ! mvn -q -B -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/libs" \
    >"$folder/fetch.log" 2>&1; then
    tail -n 20 "$folder/fetch.log" >&2
    fail "Maven could not fetch $what; its output is in $folder/fetch.log"
  fi
  # A rename is whole or not at all: a fetch that is broken off is done again, and two at the same time do not mix.
  mv -T "$work/libs" "$folder/libs" 2>/dev/null || [[ -d "$folder/libs" ]]
  rm -rf "$work"
}

# A process that has ended but was not yet waited for keeps its number.
is_alive() { grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }

# end_processes PID...: asks them to end, in this order; kills those that still run after 20 s. A Java process that has
# just started can be deaf to the first signal.
end_processes() {
  local pid deadline=$((SECONDS + 20))
  for pid; do kill "$pid" 2>/dev/null || true; done
  for pid; do
    while is_alive "$pid"; do
      ((SECONDS < deadline)) || kill -9 "$pid" 2>/dev/null || true
      sleep 0.1
    done
  done
}

# run_command KIND OPTIONS ARGUMENT...: does what the command line of a script asks for: fetch, start, status or stop. Sets
# PORT, DATA (by default $CACHE/KIND-data-PORT) and, where `topics` is among the OPTIONS, TOPICS.
run_command() {
  local kind="$1" options="$2" command="${3:-}"
  shift 3 || shift $#
  while (($#)); do
    case "$1" in
      --port) PORT="${2:?--port needs a number}" ;;
      --data) DATA="${2:?--data needs a folder}" ;;
      --topics)
        [[ "$options" == *topics* ]] || fail "unknown argument '$1'; see the head of this file"
        TOPICS="${2?--topics needs names}"
        ;;
      *) fail "unknown argument '$1'; see the head of this file" ;;
    esac
    shift 2
  done
  DATA="${DATA:-$CACHE/$kind-data-$PORT}"
  [[ "$DATA" = /* ]] || DATA="$PWD/$DATA"
  case "$command" in
    fetch | start | stop | status) "$command" ;;
    *) fail "give one of: fetch, start, status, stop" ;;
  esac
}
