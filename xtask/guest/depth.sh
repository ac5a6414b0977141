# What a recording says of one request at a time and of a full queue predicts the speed at every depth: the times of
# 4 KiB random reads and writes are within 5 % of it (xtask/src/guest/spans.rs).
# On the wall clock the distance is only printed.
# trial: --profile small.toml --controller cqe --uml --in-turn
# trial: --profile small.toml --controller no-cqe --uml --in-turn
# trial: --profile small.toml --controller cqe --clock virtual --processors 2 --in-turn
# trial: --profile small.toml --controller cqe --uml --cpu-ns 16 --in-turn
# trial: --profile small.toml --controller no-cqe --uml --cpu-ns 4 --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
tracing=/sys/kernel/tracing

fio --name=fill --filename=$card --size=192m --rw=write --bs=512k --direct=1 --end_fsync=1 --minimal >/dev/null || fail 'filling'

echo 0 >$tracing/tracing_on
echo mono >$tracing/trace_clock
echo 65536 >$tracing/buffer_size_kb
cat $tracing/events/header_page >/out/formats
for event in block/block_bio_queue block/block_bio_backmerge block/block_bio_frontmerge block/block_rq_merge \
    block/block_getrq block/block_rq_insert block/block_rq_issue block/block_rq_complete \
    mmc/mmc_request_start mmc/mmc_request_done irq/irq_handler_entry; do
    echo 1 >"$tracing/events/$event/enable"
    cat "$tracing/events/$event/format" >>/out/formats
done
# Idle times of the processor.
echo 'prev_pid == 0 || next_pid == 0' >$tracing/events/sched/sched_switch/filter || fail 'a filter of sched_switch'
echo 1 >$tracing/events/sched/sched_switch/enable
cat $tracing/events/sched/sched_switch/format >>/out/formats
echo 1 >$tracing/tracing_on

# Each depth has a part of the card for itself: nothing is read twice.
first_mib=0
for kind in randread randwrite; do
    for depth in 1 2 4 8 16 32; do
        echo "depth-$kind-$depth $first_mib 16" >>/out/parts
        # The card's cache is empty, as at the first.
        dd if=/dev/null of=$card conv=notrunc,fsync 2>/dev/null || fail 'flushing'
        fio --name=depth --filename=$card --offset=${first_mib}m --size=16m --io_size=2m --rw=$kind --bs=4k --direct=1 \
            --ioengine=libaio --iodepth=$depth --randseed=$((depth + 1)) --clocksource=clock_gettime --output-format=json \
            --output="/out/depth-$kind-$depth.json" || fail "fio $kind at $depth"
        first_mib=$((first_mib + 16))
    done
done
echo 0 >$tracing/tracing_on
for cpu in "$tracing"/per_cpu/cpu*; do
    lost=$(sed -n 's/^overrun: //p' "$cpu/stats")
    [ "$lost" = 0 ] || fail "$lost events of ${cpu##*/} were overwritten"
    dd if="$cpu/trace_pipe_raw" of="/out/${cpu##*/}" bs=4096 iflag=nonblock 2>/dev/null
done
tell 'depths'
