# Sourced by scripts that take minutes: numbered steps, each with a line that moves on a terminal. Elsewhere a step prints
# one line when it starts and one when it ends, so logs stay short.
#
#   steps 3                               how many steps follow
#   step "building" COMMAND ...           runs the command; its output goes to a log, which is shown when it fails
#
# The moving line shows the counter that the command's own output gives: ninja's [n/m], or the percentages that apt-get
# writes to the file in $APT_STATUS.

steps_total=0
steps_done=0
steps() { steps_total=$1; }

_clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# _state LOG SECONDS: how far the command is, as far as it says so.
_state() {
  local last n m
  last=$(tail -c 4096 "$1" 2>/dev/null | tr '\r' '\n' | grep -oE '^\[[0-9]+/[0-9]+\]' | tail -1 || true)
  if [ -n "$last" ]; then
    n=${last#[}; n=${n%%/*}; m=${last##*/}; m=${m%]}
    if [ "$n" -gt 0 ] && [ "$2" -gt 5 ]; then
      printf '%s of %s, %s left' "$n" "$m" "$(_clock $(($2 * (m - n) / n)))"
    else
      printf '%s of %s' "$n" "$m"
    fi
    return
  fi
  if [ -n "${APT_STATUS:-}" ] && [ -s "$APT_STATUS" ]; then
    last=$(tail -n 1 "$APT_STATUS")
    case "$last" in
      dlstatus:*) printf 'downloading, %s %%' "$(cut -d: -f3 <<<"$last" | cut -d. -f1)" ;;
      pmstatus:*) printf 'unpacking and setting up, %s %%' "$(cut -d: -f3 <<<"$last" | cut -d. -f1)" ;;
    esac
  fi
}

step() {
  local label=$1 log start=$SECONDS status=0 pid line
  shift
  steps_done=$((steps_done + 1))
  local head="[$steps_done/$steps_total] $label"
  log=$(mktemp)
  if [ -t 2 ]; then
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
      line=$(_state "$log" $((SECONDS - start)))
      printf '\r\033[K%s  %s%s' "$head" "$(_clock $((SECONDS - start)))" "${line:+  ($line)}" >&2
      sleep 0.3
    done
    wait "$pid" || status=$?
    trap - INT TERM
    printf '\r\033[K' >&2
  else
    printf '%s\n' "$head ..." >&2
    "$@" >"$log" 2>&1 </dev/null || status=$?
  fi
  if [ "$status" -ne 0 ]; then
    printf '%s: failed after %s; the end of its output:\n' "$head" "$(_clock $((SECONDS - start)))" >&2
    grep -E 'error|Error|FAILED|undefined|^E: ' "$log" | head -40 >&2 || true
    tail -20 "$log" >&2
    printf 'The whole output is in %s\n' "$log" >&2
    return "$status"
  fi
  printf '%s: done in %s\n' "$head" "$(_clock $((SECONDS - start)))" >&2
  grep -E 'warning:' "$log" >&2 || true
  rm -f "$log"
}
