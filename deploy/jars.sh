# Sourced by kafka.sh and flink.sh: how they speak, and how they get their jars.

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
