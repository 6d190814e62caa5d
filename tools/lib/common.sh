# Shared by tools/setup, tools/quickstart and tools/test; sourced, not run.
# Expects the workspace root as the current folder.

# "  12 s  words": one plain line before each phase of a script.
phase() {
  printf '%4d s  %s\n' "$SECONDS" "$*"
}

# Ends the script with a sentence on stderr.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Bazel with its caches where they can be written: under $HOME/.cache as usual,
# else under $TMPDIR. TROUPE_OUTPUT_BASE overrides the output base.
#
#   troupe_bazel test //tests/comm/... --config=asan
#
# A person sees the progress. A log has none of it, or, where progress_seconds is
# set, a line every so many seconds.
troupe_bazel() {
  local command=$1
  shift
  local startup=() options=()
  local cache=${HOME:+$HOME/.cache}
  if [[ -n $cache ]] && mkdir -p "$cache/troupe-bazel" 2>/dev/null &&
    [[ -w $cache/troupe-bazel ]]; then
    options+=("--disk_cache=$cache/troupe-bazel")
  else
    cache=${TMPDIR:-/tmp}/troupe-$(id -u)
    mkdir -p "$cache"
    startup+=("--output_user_root=$cache/bazel")
    options+=("--disk_cache=$cache/disk")
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
