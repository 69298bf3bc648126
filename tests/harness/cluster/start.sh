# Makes the hosts of a cluster and starts their services; ends, and all of it with this process, at the end of the input.
#
# Runs as the first process of its own namespaces of processes, mounts, network and host name, so that nothing outlives it.
# $1 is a directory with the settings, the other words are the names of the hosts, the first one for launchers.
set -e
dir=$1
shift

# What tests have mounted meanwhile is theirs alone: a copy of the mount would keep the device from going.
grep -o ' /[^ ]*/fathom-test-[^ ]*' /proc/self/mounts | while read -r point; do
    umount --lazy "$point" 2> /dev/null || :
done

mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind "$dir/hosts" /etc/hosts
mount --bind "$dir/ssh_config" /etc/ssh/ssh_config

# A file system that is soon full.
mkdir "$dir/small"
mount -t tmpfs -o size=512k tmpfs "$dir/small"

# What root's shell does at a login, which may take its time, is not for the commands of launchers.
: > /run/nothing
for name in .bashrc .bash_profile .bash_login .profile; do
    test ! -e "/root/$name" || mount --bind /run/nothing "/root/$name"
done

# Debian's Slurm looks for PMIx by a name that only its development package has.
for library in /usr/lib/*/pmix2/lib; do
    test ! -e "$library/libpmix.so" || continue
    cp -a "$library" /run/pmix
    ln -s libpmix.so.2 /run/pmix/libpmix.so
    mount --bind /run/pmix "$library"
done

inside() {
    host=$1
    shift
    nsenter --net="$dir/$host.net" --uts="$dir/$host.uts" "$@"
}

# Looks for the end of a command with success.
await() {
    for look in $(seq 600); do
        "$@" > /dev/null 2>&1 && return
        sleep 0.05
    done
    echo "no success within 30 s: $*" >&2
    exit 1
}

ip link set lo up
ip link add fleet type bridge
ip link set fleet up
number=0
for host in "$@"; do
    number=$((number + 1))
    : > "$dir/$host.net"
    : > "$dir/$host.uts"
    unshare --net="$dir/$host.net" --uts="$dir/$host.uts" hostname "$host"
    ip link add "to-$host" type veth peer name eth0 netns "$dir/$host.net"
    ip link set "to-$host" master fleet up
    inside "$host" sh -c "ip link set lo up && ip address add 10.77.0.$number/24 dev eth0 && ip link set eth0 up"
    inside "$host" /usr/sbin/sshd -D -e -f "$dir/sshd_config" < /dev/null 2>> "$dir/$host.sshd.log" &
done

launch_host=$1
shift
mkdir "$dir/slurm"
munged --force --foreground --key-file="$dir/munge.key" --socket="$dir/munge.socket" --pid-file="$dir/munge.pid" \
    --seed-file="$dir/munge.seed" --log-file="$dir/munge.log" < /dev/null 2>> "$dir/munge.log" &
await test -S "$dir/munge.socket"
inside "$launch_host" slurmctld -D -i < /dev/null >> "$dir/slurm/slurmctld.out" 2>&1 &
for host in "$@"; do
    mkdir "$dir/slurm/$host.tmp"
    inside "$host" slurmd -D < /dev/null >> "$dir/slurm/$host.out" 2>&1 &
done
for host in "$@"; do
    await inside "$launch_host" ssh "$host" true
done
are_idle() {
    test "$(inside "$launch_host" sinfo --noheader --Node --states=idle --format=%N | wc -l)" = $#
}
await are_idle "$@"
echo up
# A shell that waits also buries the orphans of all hosts.
exec 3<&0
cat <&3 > /dev/null &
wait $!
