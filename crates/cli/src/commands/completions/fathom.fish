# fish completion for fathom: asks the program what may stand in the place of the word.

function __fathom_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program __complete $words "$current" 2>/dev/null)
    set -l directives "$lines[1]"
    set -e lines[1]
    while set -q lines[1]
        printf '%s\t%s\n' $lines[1] "$lines[2]"
        set -e lines[1..2]
    end
    if string match -q '*paths*' -- $directives
        set -l option (string match -r -- '^--[^=]*=' "$current")
        for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' "$current"))
            echo "$option$path"
        end
    end
end

complete -c fathom -f -a '(__fathom_complete)'
