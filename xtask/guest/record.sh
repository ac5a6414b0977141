# A recording by `emmclab trace record --full` has every request, and the spans that the card itself logged. The host
# compares each request when the machine is off (xtask/src/guest/spans.rs).
# trial: --profile small.toml --controller cqe --clock virtual --in-turn
# trial: --profile small.toml --controller no-cqe --clock virtual --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0

fio --name=fill --filename=$card --size=80m --rw=write --bs=512k --direct=1 --minimal >/dev/null || fail 'filling'
dd if=/dev/null of=$card conv=notrunc,fsync 2>/dev/null || fail 'flushing'
sync

# Kinds of requests, each in a part of the card of its own. The thread of the burst does not sleep after a command, so
# that the answer's interrupt comes in time: without a queue it bounds what an interrupt needs to its handler.
cat >/tmp/load <<'END'
echo merged-write-4 0 8 >>/out/parts
fio --name=merged-write-4 --filename=/dev/mmcblk0 --size=8m --direct=1 --ioengine=libaio --iodepth=16 \
    --iodepth_batch=16 --iodepth_batch_complete_min=16 --rw=write --bs=4k --io_size=1m --clocksource=clock_gettime \
    --output-format=json --output=/out/merged-write-4.json || exit 1
first_mib=8
for kib in 4 128; do
    for pattern in read randread write randwrite; do
        name=direct-$pattern-$kib
        echo "$name $first_mib 8" >>/out/parts
        fio --name=$name --filename=/dev/mmcblk0 --offset=${first_mib}m --size=8m --randseed=$((first_mib + 1)) --direct=1 \
            --ioengine=psync --rw=$pattern --bs=${kib}k --io_size=$((kib * 60))k --clocksource=clock_gettime \
            --output-format=json --output=/out/$name.json || exit 1
        first_mib=$((first_mib + 8))
    done
done
END
# What a recorder that was killed left, of a process that does not exist.
events=/sys/kernel/tracing/dynamic_events
left=f:emmclab_4194304/sdhci_send_command__exit
echo "$left sdhci_send_command%return" >>$events || echo 'this kernel has no events of functions'
/guest/emmclab trace record --full --buffer 24MiB -o /out/trace.dat -- sh /tmp/load || fail "record: exit code $?"

grep -q emmclab $events 2>/dev/null && fail "events are left: $(cat $events)"
/guest/emmclab trace analyse /out/trace.dat --json >/tmp/analysis || [ $? = 1 ] || fail 'analyse'
for expected in '"unpaired": 0' '"lost_events": 0' '"name": "Q2G"' '"name": "G2I"' '"name": "I2D"'; do
    grep -q "$expected" /tmp/analysis || fail "the analysis has no $expected"
done
tell 'spans'
