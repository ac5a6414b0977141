# What `trace record` costs at this card's speed: IOPS of 4 KiB requests with and without it, then by its own
# `--measure-overhead`. Run by hand in QEMU, which counts the instructions of an event too (docs/trace.md).
. /guest/library.sh
wait_card
card=/dev/mmcblk0
fio --name=fill --filename=$card --size=128m --rw=write --bs=512k --direct=1 --end_fsync=1 --minimal >/dev/null || fail 'filling'

# The same requests, again: load KIND DEPTH [BEFORE FIO...]; the mean time of a request, or between two, in $us.
load() {
    kind=$1 depth=$2
    shift 2
    dd if=/dev/null of=$card conv=notrunc,fsync 2>/dev/null || fail 'flushing'
    rm -f /tmp/recording.dat
    engine=libaio
    [ "$depth" = 1 ] && engine=psync
    "$@" fio --name=load --filename=$card --size=128m --io_size=16m --rw=$kind --bs=4k --direct=1 --ioengine=$engine \
        --iodepth=$depth --randseed=7 --clocksource=clock_gettime --output-format=json --output=/tmp/result || fail "fio $kind $depth"
    # Of fio's two results the one that is not 0.
    us=$(grep -A 5 '"lat_ns"' /tmp/result | sed -n 's/.*"mean" : \([0-9.]*\).*/\1/p' | awk -v depth="$depth" '$1 > 0 { print $1 / depth / 1e3; exit }')
}

for options in '' --full; do
    for kind in randread randwrite; do
        for depth in 1 32; do
            load $kind $depth
            before=$us
            # shellcheck disable=SC2086 # Without options there is no word.
            load $kind $depth /guest/emmclab trace record $options -o /tmp/recording.dat --
            with=$us
            load $kind $depth
            awk -v kind="$kind$options" -v depth="$depth" -v before="$before" -v after="$us" -v with="$with" 'BEGIN {
                without = (before + after) / 2
                printf "%s at depth %d: %.2f us, %.2f with recording: %.2f %% fewer IOPS\n", kind, depth, without, with, 100 * (1 - without / with) }'
        done
    done
done

# Its own measurement, beside what fio says of the very same runs: one that fills caches, then without and with in turns.
measure() {
    /guest/emmclab trace record --measure-overhead --force -o /tmp/recording.dat -- "$@" 2>/dev/null || fail '--measure-overhead'
}
cat >/tmp/load <<'END'
fio --name=load --filename=/dev/mmcblk0 --size=128m --io_size=16m --rw=randread --bs=4k --direct=1 --ioengine=psync \
    --randseed=7 --clocksource=clock_gettime --output-format=terse --terse-version=3 --output=/tmp/run && cat /tmp/run >>/tmp/runs
END
measure sh /tmp/load
# Terse fields: KiB and ms of reads.
awk -F ';' '{ iops[NR] = $6 / 4 * 1000 / $9 }
    END { for (run = 3; run < NR; run += 2) { sum += iops[run] / (iops[run - 1] + iops[run + 1]) * 2; rounds++ }
        printf "fio in these runs: %.2f %% fewer IOPS, %d rounds\n", 100 * (1 - sum / rounds), rounds }' /tmp/runs
# For a time instead of an amount of work.
measure fio --name=load --filename=$card --size=128m --time_based --runtime=1 --rw=randread --bs=4k --direct=1 --ioengine=psync \
    --randseed=7 --clocksource=clock_gettime
# dd's own writes into /dev/null have two more events for each read.
measure dd if=$card of=/dev/null bs=4k iflag=direct count=4096
