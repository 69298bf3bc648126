#compdef fathom
# zsh completion for fathom: asks the program what may stand in the place of the word.

_fathom() {
    local directives word meaning
    local -a lines words_found shown ending
    lines=("${(@f)$($words[1] __complete "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    directives=$lines[1]
    shift lines
    for word meaning in "${(@)lines}"; do
        words_found+=("$word")
        shown+=("$word${meaning:+  -- $meaning}")
    done
    if [[ $directives == *nospace* ]]; then
        ending=(-S '')
    fi
    if (( $#words_found )); then
        compadd -l "${(@)ending}" -d shown -a -- words_found
    fi
    if [[ $directives == *paths* ]]; then
        if [[ $PREFIX == --*=* ]]; then
            compset -P '--*='
        fi
        _files
    fi
}

if [[ $funcstack[1] == _fathom ]]; then
    _fathom "$@"
else
    compdef _fathom fathom
fi
