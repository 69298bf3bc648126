# A rank of a staged job comes to a stage: says so, and waits while it is held there.
# $1 is the directory of the job, $2 the stage.
rank=${PMI_RANK:-$PMIX_RANK}
: > "$1/at-$2-$rank"
while test -e "$1/hold-$2-$rank"; do
    sleep 0.02
done
