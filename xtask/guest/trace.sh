# The spans of recorded requests are those that the card itself logged: reads and writes of 4 and 128 KiB, in sequence and
# at random, direct and through the page cache, then bursts that merge and blocks that are split. The host compares each
# request when the machine is off (xtask/src/guest/spans.rs). On the wall clock every request is paired and is one of the
# card's, and how far the spans are from the card's account is only printed.
# trial: --profile small.toml --controller cqe --uml --in-turn
# trial: --profile small.toml --controller no-cqe --uml --in-turn
# trial: --profile small.toml --controller cqe --clock virtual --in-turn
# trial: --profile small.toml --controller no-cqe --clock virtual --in-turn
# trial: --profile small.toml --controller cqe --in-turn
# trial: --profile small.toml --controller cqe --processors 2 --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
tracing=/sys/kernel/tracing
part_mib=8

fio --name=fill --filename=$card --size=152m --rw=write --bs=512k --direct=1 --minimal >/dev/null || fail 'filling'
dd if=/dev/null of=$card conv=notrunc,fsync 2>/dev/null || fail 'flushing'
sync

# Events that this kernel has, of those that `emmclab trace record` takes.
echo 0 >$tracing/tracing_on
echo mono >$tracing/trace_clock
echo 24576 >$tracing/buffer_size_kb
cat $tracing/events/header_page >/out/formats
record() {
    [ -e "$tracing/events/$1/enable" ] || return 0
    echo 1 >"$tracing/events/$1/enable"
    cat "$tracing/events/$1/format" >>/out/formats
}
for event in block_bio_queue block_split block_getrq block_bio_backmerge block_bio_frontmerge block_rq_merge block_rq_insert \
    block_rq_issue block_rq_requeue block_rq_complete; do
    record block/$event
done
for event in mmc/mmc_request_start mmc/mmc_request_done iomap/iomap_dio_rw_begin filemap/mm_filemap_add_to_page_cache \
    writeback/writeback_dirty_folio irq/irq_handler_entry; do
    record $event
done
# The driver starts the time limit of a command right before it writes the command.
limit=$(grep ' sdhci_timeout_data_timer' /proc/kallsyms | head -n 1)
if [ -n "$limit" ] && echo "function == 0x${limit%% *}" >$tracing/events/timer/timer_start/filter; then
    record timer/timer_start
    echo "$limit" >>/out/formats
fi
for call in read pread64 write pwrite64 fsync io_submit; do
    record syscalls/sys_enter_$call
    record syscalls/sys_exit_$call
done

# One kind of requests in a part of its own: requests NAME ARGUMENTS.
first_mib=0
requests() {
    requests_name=$1
    shift
    echo "$requests_name $first_mib $part_mib" >>/out/parts
    fio --name="$requests_name" --filename=$card --offset=${first_mib}m --size=${part_mib}m --randseed=$((first_mib + 1)) \
        --clocksource=clock_gettime --output-format=json --output="/out/$requests_name.json" "$@" || fail "fio $requests_name"
    first_mib=$((first_mib + part_mib))
}

echo 1 >$tracing/tracing_on
for kib in 4 128; do
    for pattern in read randread write randwrite; do
        amount=$((kib * 60))
        requests "direct-$pattern-$kib" --direct=1 --ioengine=psync --rw=$pattern --bs=${kib}k --io_size=${amount}k
        requests "sync-$pattern-$kib" --direct=0 --sync=1 --ioengine=psync --rw=$pattern --bs=${kib}k --io_size=${amount}k
    done
done
# A burst of neighbours is merged, a block of 2 MiB is split.
requests "merged-write-4" --direct=1 --ioengine=libaio --iodepth=16 --iodepth_batch=16 --iodepth_batch_complete_min=16 \
    --rw=write --bs=4k --io_size=1m
requests "split-write-2048" --direct=1 --ioengine=psync --rw=write --bs=2m --io_size=8m
requests "split-read-2048" --direct=1 --ioengine=psync --rw=read --bs=2m --io_size=8m
echo 0 >$tracing/tracing_on

for cpu in "$tracing"/per_cpu/cpu*; do
    lost=$(sed -n 's/^overrun: //p' "$cpu/stats")
    [ "$lost" = 0 ] || fail "$lost events of ${cpu##*/} were overwritten"
    # Without events it ends with "try again".
    dd if="$cpu/trace_pipe_raw" of="/out/${cpu##*/}" bs=4096 iflag=nonblock 2>/dev/null
    left=$(sed -n 's/^entries: //p' "$cpu/stats")
    [ "$left" = 0 ] || fail "$left events of ${cpu##*/} were not read"
done
tell 'spans'
