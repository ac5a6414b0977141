# What the kernel's events cost: the mean time of direct random reads of 4 KiB, one at a time, with each event alone, and
# with the sets of `trace record`. Run by hand in QEMU, which counts instructions (docs/trace.md).
. /guest/library.sh
wait_card
card=/dev/mmcblk0
instance=/sys/kernel/tracing/instances/cost
fio --name=fill --filename=$card --size=64m --rw=write --bs=512k --direct=1 --end_fsync=1 --minimal >/dev/null || fail 'filling'

# mean NAME EVENTS...; interrupts are filtered as `trace record` does, and so are switches to and from the idle thread.
mean() {
    name=$1
    shift
    mkdir $instance || fail 'an instance of tracefs'
    echo mono >$instance/trace_clock
    echo 16384 >$instance/buffer_size_kb
    for event in "$@"; do
        case $event in
            *idle) event=sched/sched_switch; echo 'prev_pid == 0 || next_pid == 0' >$instance/events/$event/filter ;;
            irq/*) echo 'name ~ "mmc*"' >$instance/events/$event/filter ;;
        esac
        echo 1 >$instance/events/$event/enable || fail "no $event"
    done
    fio --name=load --filename=$card --size=64m --io_size=8m --rw=randread --bs=4k --direct=1 --ioengine=psync --randseed=7 \
        --clocksource=clock_gettime --output-format=json --output=/tmp/result || fail 'fio'
    events=$(cat $instance/per_cpu/cpu*/stats | awk '/^entries: / { sum += $2 } END { print sum }')
    rmdir $instance
    # Of reads, which come first.
    us=$(grep -A 5 '"lat_ns"' /tmp/result | sed -n 's/.*"mean" : \([0-9.]*\).*/\1/p' | head -n 1)
    none=${none:-$us}
    awk -v name="$name" -v us="$us" -v none="$none" -v events="$events" 'BEGIN {
        printf "%-26s %8.3f us, %5.3f more, %5.2f %%, %.2f events a read\n", name, us / 1e3, (us - none) / 1e3, 100 * (us / none - 1), events / 2048 }'
}

mean none
for event in syscalls/sys_enter_pread64 block/block_bio_queue block/block_getrq block/block_rq_insert block/block_rq_issue \
    mmc/mmc_request_start irq/irq_handler_entry mmc/mmc_request_done block/block_rq_complete sched/sched_waking sched/idle \
    sched/sched_switch syscalls/sys_exit_pread64; do
    mean $event $event
done
spans='syscalls/sys_enter_pread64 syscalls/sys_exit_pread64 block/block_bio_queue block/block_rq_issue mmc/mmc_request_start
    mmc/mmc_request_done block/block_rq_complete'
mean spans $spans
mean default $spans sched/idle
mean full $spans block/block_getrq block/block_rq_insert irq/irq_handler_entry sched/sched_waking sched/sched_switch
mean none
