# bash completion for tacho. Commands and options are read from tacho's own help, so they are always those of the installed
# program. Installed as /usr/share/bash-completion/completions/tacho.
_tacho() {
  local current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} i
  # After "--" comes the program to run: complete it as if tacho were not there.
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      else
        COMPREPLY=($(compgen -cf -- "$current"))
      fi
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    local words
    words=$("$program" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) {2,}.*/\1/p')
    COMPREPLY=($(compgen -W "$words --help --version" -- "$current"))
  elif [[ $current == -* ]]; then
    local words
    words=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null |
      sed -nE 's/^ {2,4}(-[A-Za-z0-9-]+(, -[A-Za-z0-9-]+)*).*/\1/p' | tr -s ', ' '\n')
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -o default -F _tacho tacho
