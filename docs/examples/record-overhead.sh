# What `trace record` costs: IOPS of 4 KiB requests with and without it. Run by hand in QEMU, which counts the
# instructions of an event too (docs/trace.md).
. /guest/library.sh
wait_card
card=/dev/mmcblk0
fio --name=fill --filename=$card --size=128m --rw=write --bs=512k --direct=1 --end_fsync=1 --minimal >/dev/null || fail 'filling'

# The same requests, again: load KIND DEPTH [BEFORE FIO...]; IOPS in $iops.
load() {
    kind=$1 depth=$2
    shift 2
    dd if=/dev/null of=$card conv=notrunc,fsync 2>/dev/null || fail 'flushing'
    rm -f /tmp/recording.dat
    "$@" fio --name=load --filename=$card --size=128m --io_size=16m --rw=$kind --bs=4k --direct=1 --ioengine=libaio \
        --iodepth=$depth --randseed=7 --clocksource=clock_gettime --minimal --output=/tmp/result || fail "fio $kind $depth"
    case $kind in randread) field=8 ;; *) field=49 ;; esac
    iops=$(cut -d ';' -f $field /tmp/result)
}

for options in '' --full; do
    for kind in randread randwrite; do
        for depth in 1 32; do
            load $kind $depth
            before=$iops
            # shellcheck disable=SC2086 # Without options there is no word.
            load $kind $depth /guest/emmclab trace record $options -o /tmp/recording.dat --
            with=$iops
            load $kind $depth
            awk -v kind="$kind$options" -v depth="$depth" -v before="$before" -v after="$iops" -v with="$with" 'BEGIN {
                without = (before + after) / 2
                printf "%s at depth %d: %d IOPS, %d with recording: %.2f %% less\n", kind, depth, without, with, 100 * (1 - with / without) }'
        done
    done
done
