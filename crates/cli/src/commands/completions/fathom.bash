# bash completion for fathom: asks the program what may stand in the place of the word.

_fathom() {
    local line=${COMP_LINE:0:COMP_POINT} words=() word i
    # Words as the shell passes them: readline splits at = and : as well.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if [[ $i -eq 0 || $line == [[:space:]]* ]]; then
            line=${line#"${line%%[![:space:]]*}"}
            words+=('')
        fi
        word=${COMP_WORDS[i]}
        if [[ $i -eq $COMP_CWORD ]]; then word=$line; fi
        words[${#words[@]}-1]+=$word
        line=${line#"$word"}
    done
    local current=${words[${#words[@]}-1]} directives value is_quoted=
    if [[ $current == [\'\"]* ]]; then
        is_quoted=1
        current=${current:1}
    fi
    # What stands before the part of the word that readline replaces.
    local before=${current%"$2"}
    COMPREPLY=()
    {
        IFS= read -r directives
        while IFS= read -r value && IFS= read -r _; do
            value=${value#"$before"}
            # Names of files are quoted by readline, all of them.
            if [[ -z $is_quoted && $directives != *paths* ]]; then
                printf -v value %q "$value"
            fi
            COMPREPLY+=("$value")
        done
    } < <("$1" __complete "${words[@]:1}" 2>/dev/null)
    if [[ $directives == *nospace* ]]; then
        compopt -o nospace
    fi
    if [[ $directives == *paths* ]]; then
        compopt -o filenames
        while IFS= read -r value; do
            COMPREPLY+=("$value")
        done < <(compgen -f -- "$2")
    fi
}

complete -o nosort -F _fathom fathom
