# Shared by tools/setup, tools/quickstart and tools/test; sourced, not run.
# Expects the workspace root as the current folder.

# Prints "  12 s  words", the line before each phase of a script.
phase() {
  printf '%4d s  %s\n' "$SECONDS" "$*"
}

# Ends the script with a sentence on stderr.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Prints the comment at the head of this script, and ends it, if --help or -h is
# among the arguments.
#
#   help_if_asked "$@"
help_if_asked() {
  local argument
  for argument in "$@"; do
    case $argument in
      --help | -h)
        sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "tools/${0##*/}"
        exit 0
        ;;
    esac
  done
}

# Prints a folder for Troupe's caches that can be written: ~/.cache, else one under
# $TMPDIR.
cache_root() {
  local cache=${HOME:+$HOME/.cache}
  if [[ -n $cache ]] && mkdir -p "$cache/troupe-bazel" 2>/dev/null &&
    [[ -w $cache/troupe-bazel ]]; then
    echo "$cache"
  else
    cache=${TMPDIR:-/tmp}/troupe-$(id -u)
    mkdir -p "$cache/troupe-bazel"
    echo "$cache"
  fi
}

# Runs Bazel with its caches in cache_root. TROUPE_OUTPUT_BASE overrides the output
# base.
#
#   troupe_bazel test //tests/comm/... --config=asan
#
# A terminal shows the progress. A log has none of it, or a line every
# progress_seconds if that is set.
troupe_bazel() {
  local command=$1
  shift
  local cache startup=() options=()
  cache=$(cache_root)
  options+=("--disk_cache=$cache/troupe-bazel")
  if [[ $cache != "${HOME:-}/.cache" ]]; then
    startup+=("--output_user_root=$cache/bazel")
  fi
  if [[ -n ${TROUPE_OUTPUT_BASE:-} ]]; then
    startup+=("--output_base=$TROUPE_OUTPUT_BASE")
  fi
  options+=(--ui_event_filters=-info --noshow_loading_progress)
  if [[ ! -t 2 && -n ${progress_seconds:-} ]]; then
    options+=(--curses=no --color=no
      "--show_progress_rate_limit=$progress_seconds")
  elif [[ ! -t 2 ]]; then
    options+=(--noshow_progress)
  fi
  bazel "${startup[@]}" "$command" "${options[@]}" "$@"
}
