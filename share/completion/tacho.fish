# fish completion for tacho. Commands and options are read from tacho's own help, so they are always those of the installed
# program. Installed as /usr/share/fish/vendor_completions.d/tacho.fish.
function __tacho_commands
    tacho --help 2>/dev/null | sed -nE 's/^  ([a-z]+) {2,}(.*)/\1\t\2/p'
end
function __tacho_options
    set -l words (commandline -opc)
    test (count $words) -ge 2; or return
    tacho $words[2] --help 2>/dev/null | sed -nE 's/^ {2,4}(-[A-Za-z], )?(--[a-z0-9-]+)(, -[A-Za-z0-9-]+)*( [^ ]+)* {2,}(.*)/\2\t\5/p; s/^ {2,4}(-[A-Za-z], )?(--[a-z0-9-]+)(, -[A-Za-z0-9-]+)*( [^ ]+)*$/\2/p'
end
function __tacho_in_target
    contains -- -- (commandline -opc)
end
complete -c tacho -n 'test (count (commandline -opc)) -eq 1' -f -a '(__tacho_commands)'
complete -c tacho -n 'string match -q -- "-*" (commandline -ct); and not __tacho_in_target' -a '(__tacho_options)'
