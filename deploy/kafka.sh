#!/usr/bin/env bash
# A one-node Kafka broker on loopback, for development, tests and the demo. Needs Java 17 and, once, Maven.
#
#   deploy/kafka.sh fetch                             fetch the broker's jars into the cache
#   deploy/kafka.sh start  [--port P] [--data DIR] [--topics "A B"]
#                                                     start it and wait until it answers (fetches first if need be)
#   deploy/kafka.sh status [--port P] [--data DIR]    exit 0 if it runs, 3 if not
#   deploy/kafka.sh stop   [--port P] [--data DIR]    stop it; ends only the process that `start` has written down
#
# A new data folder gets the topics of configs/streaming.yaml, or those that --topics names ("" for none); none is ever
# created by itself. Two brokers need two ports (P and P+1 are used) and two data folders. Environment: UNISON_CACHE,
# UNISON_KAFKA_PORT, UNISON_KAFKA_DATA, UNISON_KAFKA_HEAP, UNISON_KAFKA_START_SECONDS.
set -euo pipefail

# That of kafka.pom.xml.
VERSION=4.1.1
DEPLOY="$(cd "$(dirname "$0")" && pwd)"
CACHE="${UNISON_CACHE:-$HOME/.cache/unison-speech}"
HOME_DIR="$CACHE/kafka-$VERSION"
LIBS="$HOME_DIR/libs"
PORT="${UNISON_KAFKA_PORT:-19092}"
DATA="${UNISON_KAFKA_DATA:-}"
HEAP="${UNISON_KAFKA_HEAP:-512m}"
TOPICS="speech.audio speech.results speech.enhanced speech.audio-dlt speech.stats"
START_SECONDS="${UNISON_KAFKA_START_SECONDS:-120}"

. "$DEPLOY/jars.sh"

fetch() { fetch_jars "Kafka $VERSION (40 MB)" "$DEPLOY/kafka.pom.xml" "$HOME_DIR"; }

# The process that `start` has written down, if it still is that broker and not a stranger with a reused number.
running_pid() {
  local pid
  [[ -f "$DATA/broker.pid" ]] || return 1
  pid="$(cat "$DATA/broker.pid")"
  [[ -n "$pid" ]] && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$DATA/server.properties" || return 1
  echo "$pid"
}

# Records are kept by size, not by age: audio that was captured long ago would be deleted as soon as it is sent.
configure() {
  cat >"$DATA/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((PORT + 1))
listeners=PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$((PORT + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$PORT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=$DATA/log
auto.create.topics.enable=false
log.retention.ms=-1
log.retention.bytes=1073741824
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
PROPERTIES
}

create_topics() {
  local topic pid made=()
  for topic in $TOPICS; do
    java -Xmx64m -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$LIBS/*" \
      org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$PORT" --create --if-not-exists \
      --topic "$topic" --partitions 1 --replication-factor 1 >>"$DATA/topics.log" 2>&1 &
    made+=($!)
  done
  for pid in "${made[@]}"; do
    wait "$pid" || fail "a topic could not be created: $(tail -n 3 "$DATA/topics.log")"
  done
}

start() {
  local pid fresh=""
  if pid="$(running_pid)"; then
    grep -q "^advertised.listeners=PLAINTEXT://127.0.0.1:$PORT$" "$DATA/server.properties" ||
      fail "$DATA belongs to a broker that runs on another port (process $pid); give another --data"
    say "already running on 127.0.0.1:$PORT (process $pid)"
    return
  fi
  need java
  fetch
  if (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then
    fail "port $PORT is taken by another program; give another one with --port"
  fi
  mkdir -p "$DATA"
  configure
  if [[ ! -f "$DATA/log/meta.properties" ]]; then
    fresh=1
    # The id is 22 characters of base64; one that began with a dash would be taken for an option.
    java -cp "$LIBS/*" kafka.tools.StorageTool format -t "A$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | cut -c 2-21)A" \
      -c "$DATA/server.properties" >"$DATA/format.log" 2>&1 ||
      fail "the data folder could not be formatted: $(tail -n 3 "$DATA/format.log")"
  fi
  # setsid: a Ctrl-C in the terminal reaches the caller, which then stops the broker in good order.
  setsid java "-Xmx$HEAP" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
    -Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info \
    -cp "$LIBS/*" kafka.Kafka "$DATA/server.properties" >"$DATA/broker.log" 2>&1 </dev/null &
  pid=$!
  echo "$pid" >"$DATA/broker.pid"
  local deadline=$((SECONDS + START_SECONDS))
  until grep -qs "Kafka Server started" "$DATA/broker.log" && (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do
    is_alive "$pid" || fail "the broker ended while starting: $(tail -n 5 "$DATA/broker.log")"
    if ((SECONDS >= deadline)); then
      stop
      fail "the broker did not answer within $START_SECONDS s; its output is in $DATA/broker.log"
    fi
    sleep 0.1
  done
  local broker="$pid"
  if [[ -n "$fresh" ]]; then create_topics; fi
  say "running on 127.0.0.1:$PORT (process $broker, data in $DATA)"
}

stop() {
  local pid
  if ! pid="$(running_pid)"; then
    say "not running"
    return
  fi
  end_processes "$pid"
  rm -f "$DATA/broker.pid"
  say "stopped"
}

status() {
  local pid
  if pid="$(running_pid)"; then
    say "running on 127.0.0.1:$PORT (process $pid, data in $DATA)"
  else
    say "not running"
    exit 3
  fi
}

run_command kafka "topics" "$@"
