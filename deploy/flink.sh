#!/usr/bin/env bash
# Apache Flink on loopback with Beam's job server in front of it, for development and tests: one JobManager, two
# TaskManagers, and a pool of Python workers for both. Needs Java 17, the project's Python and, once, Maven.
#
#   deploy/flink.sh fetch                             fetch the jars into the cache (157 MB)
#   deploy/flink.sh start  [--port P] [--data DIR]    start what does not run and wait until all of it answers
#   deploy/flink.sh status [--port P] [--data DIR]    exit 0 if all of it runs, 3 if not
#   deploy/flink.sh stop   [--port P] [--data DIR]    stop it; ends only processes that `start` has written down
#
# Ports: P the job server (--job_endpoint), P+1 its artifacts, P+2 its expansion service, P+3 Flink's REST interface and
# dashboard, P+4 the JobManager, P+5 its blobs, P+6 the worker pool (--environment_config). Logs, process ids, checkpoints
# and savepoints lie in DIR. `start` over a cluster of which a part has died starts that part again.
# Environment: UNISON_CACHE, UNISON_FLINK_PORT, UNISON_FLINK_DATA, UNISON_FLINK_START_SECONDS, UNISON_PYTHON.
set -euo pipefail

# Those of flink.pom.xml.
VERSION=1.19-beam-2.70.0
DEPLOY="$(cd "$(dirname "$0")" && pwd)"
ROOT="$(dirname "$DEPLOY")"
CACHE="${UNISON_CACHE:-$HOME/.cache/unison-speech}"
HOME_DIR="$CACHE/flink-$VERSION"
LIBS="$HOME_DIR/libs"
PORT="${UNISON_FLINK_PORT:-18099}"
DATA="${UNISON_FLINK_DATA:-}"
START_SECONDS="${UNISON_FLINK_START_SECONDS:-300}"
PYTHON="${UNISON_PYTHON:-$ROOT/.venv/bin/python}"
PARTS="jobmanager taskmanager-1 taskmanager-2 workers jobserver"
# Flink on Java 17 looks into these.
OPENS=()
for package in java.lang java.lang.invoke java.lang.reflect java.net java.io java.nio java.text java.time java.util \
  java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks; do
  OPENS+=("--add-opens=java.base/$package=ALL-UNNAMED")
done

. "$DEPLOY/jars.sh"

fetch() { fetch_jars "Flink and Beam's job server (157 MB)" "$DEPLOY/flink.pom.xml" "$HOME_DIR"; }

# A part's process, if it still is what `start` has written down and not a stranger with a reused number.
running_pid() {
  local pid
  [[ -f "$DATA/$1.pid" ]] || return 1
  pid="$(cat "$DATA/$1.pid")"
  [[ -n "$pid" ]] && tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxF "UNISON_FLINK_DATA=$DATA" || return 1
  is_alive "$pid" || return 1
  echo "$pid"
}

# One TaskManager carries the whole job while the other is away. That one is gone is seen at once by its closed port; the
# heartbeat is patient with a busy machine. A job is begun again, from its last checkpoint, until somebody cancels it.
configure() {
  mkdir -p "$DATA/conf" "$DATA/tmp" "$DATA/artifacts"
  cat >"$DATA/conf/config.yaml" <<YAML
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: $((PORT + 4))
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: 768m
blob.server.port: $((PORT + 5))
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $((PORT + 3))
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: 2
taskmanager.load-balance.mode: SLOTS
taskmanager.cpu.cores: 2.0
taskmanager.memory.framework.heap.size: 96m
taskmanager.memory.framework.off-heap.size: 64m
taskmanager.memory.task.heap.size: 192m
taskmanager.memory.task.off-heap.size: 64m
taskmanager.memory.managed.size: 32m
taskmanager.memory.network.min: 48m
taskmanager.memory.network.max: 48m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 128m
taskmanager.memory.jvm-overhead.max: 128m
heartbeat.interval: 2000
heartbeat.timeout: 30000
slot.request.timeout: 60000
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 1000000
restart-strategy.fixed-delay.delay: 1 s
state.backend.type: hashmap
state.checkpoints.dir: file://$DATA/checkpoints
state.savepoints.dir: file://$DATA/savepoints
classloader.resolve-order: parent-first
io.tmp.dirs: $DATA/tmp
YAML
}

# Starts a part, in a session of its own: a Ctrl-C in the terminal reaches the caller alone.
launch() {
  local part="$1"
  shift
  if running_pid "$part" >/dev/null; then return; fi
  # Appended to: what a part said before it died is why it died.
  UNISON_FLINK_DATA="$DATA" setsid "$@" >>"$DATA/$part.log" 2>&1 </dev/null &
  echo "$!" >"$DATA/$part.pid"
}

launch_java() {
  local part="$1" heap="$2"
  shift 2
  launch "$part" java "-Xmx$heap" -XX:+UseSerialGC "${OPENS[@]}" -Dorg.slf4j.simpleLogger.showDateTime=true \
    -Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS -Dorg.slf4j.simpleLogger.log.org.apache.pekko=warn \
    -cp "$LIBS/*" "$@"
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# How many TaskManagers the JobManager counts.
taskmanagers() {
  answers $((PORT + 3)) || { echo 0; return; }
  exec 3<>"/dev/tcp/127.0.0.1/$((PORT + 3))"
  printf 'GET /overview HTTP/1.0\r\n\r\n' >&3
  sed -n 's/.*"taskmanagers":\([0-9]*\).*/\1/p' <&3
  exec 3>&-
}

ready() {
  local count
  count="$(taskmanagers)"
  answers "$PORT" && answers $((PORT + 6)) && [[ "${count:-0}" -ge 2 ]]
}

# Ends what this `start` has begun; a cluster that ran before is left as it is.
give_up() {
  if [[ -n "$fresh" ]]; then stop; fi
  fail "the cluster did not start: $*"
}

start() {
  local part port fresh=1
  for part in $PARTS; do
    if running_pid "$part" >/dev/null; then fresh=""; fi
  done
  if [[ -z "$fresh" ]]; then
    grep -q "^rest.port: $((PORT + 3))$" "$DATA/conf/config.yaml" ||
      fail "$DATA belongs to a cluster that runs on other ports; give another --data"
  fi
  need java
  [[ -x "$PYTHON" ]] || fail "$PYTHON is missing; run deploy/setup.sh, or set UNISON_PYTHON"
  fetch
  if [[ -n "$fresh" ]]; then
    for port in $(seq "$PORT" $((PORT + 6))); do
      if answers "$port"; then fail "port $port is taken by another program; give other ones with --port"; fi
    done
  fi
  configure
  launch_java jobmanager 512m \
    org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint --configDir "$DATA/conf"
  for part in taskmanager-1 taskmanager-2; do
    launch_java "$part" 288m \
      org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir "$DATA/conf"
  done
  launch_java jobserver 256m org.apache.beam.runners.flink.FlinkJobServerDriver --job-host=127.0.0.1 \
    --job-port="$PORT" --artifact-port=$((PORT + 1)) --expansion-port=$((PORT + 2)) \
    --flink-master=127.0.0.1:$((PORT + 3)) --flink-conf-dir="$DATA/conf" --artifacts-dir="$DATA/artifacts"
  (cd "$ROOT" && launch workers "$PYTHON" -m pipelines.worker_pool --port $((PORT + 6)))
  local deadline=$((SECONDS + START_SECONDS))
  until ready; do
    for part in $PARTS; do
      # By its number alone: a process that is just being made does not have its own environment yet.
      is_alive "$(cat "$DATA/$part.pid")" || give_up "the $part ended: $(tail -n 5 "$DATA/$part.log")"
    done
    ((SECONDS < deadline)) || give_up "it did not answer within $START_SECONDS s; its output is in $DATA/*.log"
    sleep 0.2
  done
  say "running: job server 127.0.0.1:$PORT, dashboard http://127.0.0.1:$((PORT + 3)), workers 127.0.0.1:$((PORT + 6)), data in $DATA"
}

stop() {
  local part pid pids=()
  for part in jobserver taskmanager-1 taskmanager-2 jobmanager workers; do
    if pid="$(running_pid "$part")"; then pids+=("$pid"); fi
  done
  end_processes "${pids[@]}"
  for part in $PARTS; do rm -f "$DATA/$part.pid"; done
  if ((${#pids[@]})); then say "stopped"; else say "not running"; fi
}

status() {
  local part pid missing=""
  for part in $PARTS; do
    if pid="$(running_pid "$part")"; then say "$part runs (process $pid)"; else missing+=" $part"; fi
  done
  if [[ -n "$missing" ]]; then
    say "not running:$missing"
    exit 3
  fi
}

run_command flink "" "$@"
