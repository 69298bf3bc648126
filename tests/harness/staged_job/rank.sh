# What a launcher starts for each rank of a staged job: it becomes the program when the rank may begin.
# $1 is the directory of the job, the other words are the program and its arguments. Each rank works in a directory of its own.
dir=$1
shift
rank=${PMI_RANK:-$PMIX_RANK}
mkdir "$dir/rank-$rank"
cd "$dir/rank-$rank" || exit
sh "$dir/hold.sh" "$dir" begin
test ! -e "$dir/instead-$rank" || . "$dir/instead-$rank"
exec "$@"
