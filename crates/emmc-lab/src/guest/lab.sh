# Around the user's script in the lab: the settings of the block layer, the filesystem, the trace.
. /guest/library.sh

setting() {
    echo "$2" >"/sys/block/mmcblk0/queue/$1" || fail "the kernel has no $1 $2: $(cat "/sys/block/mmcblk0/queue/$1")"
}

tries=0
while [ ! -b /dev/mmcblk0 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 3000 ] || { dmesg | tail -n 10; fail "the kernel finds no card"; }
    usleep 10000
done
export DEVICE=/dev/mmcblk0
[ -z "$LAB_SCHEDULER" ] || setting scheduler "$LAB_SCHEDULER"
[ -z "$LAB_READ_AHEAD_KIB" ] || setting read_ahead_kb "$LAB_READ_AHEAD_KIB"
[ -z "$LAB_MAX_REQUEST_KIB" ] || setting max_sectors_kb "$LAB_MAX_REQUEST_KIB"
if [ -n "$LAB_TRACE" ]; then
    # The kernel's default clock has steps of 10 ms here.
    echo mono >/sys/kernel/tracing/trace_clock
    echo "$LAB_TRACE" >/sys/kernel/tracing/buffer_size_kb
    for event in block mmc; do
        echo 1 >"/sys/kernel/tracing/events/$event/enable"
    done
fi
if [ -n "$LAB_FILESYSTEM" ]; then
    export DIR=/mnt/card
    mkdir -p "$DIR"
    if [ "$LAB_MKFS" != none ] && [ "$BOOT" = 1 ]; then
        case $LAB_FILESYSTEM in
        ext4) quiet=-q\ -F ;;
        *) quiet=-q\ -f ;;
        esac
        case $LAB_MKFS-$LAB_FILESYSTEM in
        nodiscard-ext4) LAB_MKFS='-E nodiscard' ;;
        nodiscard-f2fs) LAB_MKFS='-t 0' ;;
        esac
        # shellcheck disable=SC2086
        "mkfs.$LAB_FILESYSTEM" $quiet $LAB_MKFS "$DEVICE" >/tmp/mkfs 2>&1 || { cat /tmp/mkfs; fail "mkfs.$LAB_FILESYSTEM"; }
    fi
    # shellcheck disable=SC2086
    mount -t "$LAB_FILESYSTEM" ${LAB_MOUNT:+-o $LAB_MOUNT} "$DEVICE" "$DIR" || { dmesg | tail -n 3; fail "mount"; }
    cd "$DIR" || fail "cd $DIR"
fi
mark script
sh -c '. /guest/library.sh; . "/guest/$LAB_SCRIPT"'
status=$?
mark end
if [ -n "$LAB_TRACE" ]; then
    echo 0 >/sys/kernel/tracing/tracing_on
    cat /sys/kernel/tracing/trace >/host/trace
    sed -n 's/^overrun: //p' /sys/kernel/tracing/per_cpu/cpu0/stats >/host/trace-lost
fi
cd /
exit "$status"
