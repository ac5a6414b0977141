# emmclab itself on a card of a real kernel: its readings, refusals, measurements, restored content, and their reports.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
# trial: --profile small.toml --controller no-cqe --clock virtual --in-turn
# trial: --profile small.toml --controller no-cqe --uml
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0

# A JSON document's first value of that name.
value() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},*$/\1/p" /tmp/said | head -n 1
}

# What it reads is what the kernel reads.
emmclab 0 list
says ELTEST
emmclab '0 1' show $card
says EXT_CSD_REV
emmclab 0 snapshot $card -o -
expect 'CID of the snapshot' "$(value cid)" "$(attribute cid)"
expect 'CSD of the snapshot' "$(value csd)" "$(attribute csd)"
[ "$(value ext_csd)" = "$(cat /sys/kernel/debug/mmc0/mmc0:0001/ext_csd)" ] || { cat /tmp/said; fail 'EXT_CSD is not what the kernel reads'; }
echo 'ok: EXT_CSD of the snapshot is what the kernel reads'
cp /tmp/said /tmp/snapshot
emmclab '0 1' health $card
emmclab 0 diff /tmp/snapshot $card

# On one clock with the card it says what it says of the simulated one, and what kernel and program cost.
# The last two words of a table's row, written and read: row FILE NAME 1|0.
row() {
    grep -E "^ *$2 +[0-9.]+ +[0-9.]+$" "$1" | head -n 1 | awk "{ print \$(NF - $3) }"
}
if [ "$CLOCK" = virtual ]; then
    ask bench '--suite speed --size 16MiB --no-queueing' >/tmp/simulated
    emmclab '0 1' bench $card --suite speed --size 16MiB --destroy --yes-i-mean mmcblk0
    wrong=0
    # Size of a request in KiB, the most that kernel and program cost, in us at 1 ns an instruction, and how much sooner
    # a request may be done because another timer ended the pause in which the kernel waits for the flush (33 ms in all).
    while read -r kib cost early what; do
        for column in 1 0; do
            awk -v kib="$kib" -v cost="$cost" -v early="$early" -v what="$what, $column" -v measured="$(row /tmp/said "$what" $column)" \
                -v simulated="$(row /tmp/simulated "$what" $column)" 'BEGIN {
                # MB/s, or requests a second where they are small.
                unit = kib == 4 ? 1e6 : kib * 1024
                took = unit / measured
                expected = unit / simulated
                printf "%s: %.0f us, simulated %.0f us: %+.0f us\n", what, took, expected, took - expected
                exit !(took > 0.98 * expected - early && took < 1.02 * expected + cost)
            }' || wrong=$((wrong + 1))
        done
    done <<ROWS
512 180 1024 512 KiB sequential
4 30 16 4 KiB random
ROWS
    [ $wrong = 0 ] && exit 0
    cat /tmp/said /tmp/simulated
    fail "$wrong figures are not what they should be"
fi

# What would destroy is refused: without being asked for, without the name, with a mounted filesystem.
head -c 33554432 /dev/urandom >/tmp/data
dd if=/tmp/data of=$card bs=1M oflag=direct conv=notrunc 2>/dev/null || fail 'writing'
emmclab 4 bench $card --suite speed --size 32MiB
complains --destroy
emmclab 4 bench $card --suite speed --size 32MiB --destroy --yes-i-mean mmcblk1
mkfs.ext4 -q -F ${card}boot0 2>/dev/null
emmclab 4 bench ${card}boot0 --suite speed --destroy --yes-i-mean mmcblk0
cmp -n 33554432 /tmp/data $card || fail 'something was written'

# Measured, and restored.
emmclab '0 1' bench $card --suite speed --size 32MiB --destroy --yes-i-mean mmcblk0 --save-restore --json
expect 'CID of the result' "$(value cid)" "$(attribute cid)"
expect 'queue of the result' "$(value queueing_on)" true
expect 'bus of the result' "$(value mode)" 'mmc HS400 enhanced strobe'
cp /tmp/said /tmp/speed.json
cmp -n 33554432 /tmp/data $card || fail 'the content of the card is not restored'
echo 'ok: 32 MiB are restored'

# Trim reaches the card.
emmclab '0 1' bench $card --suite trim --from 64MiB --size 16MiB --destroy --yes-i-mean mmcblk0 --json
cp /tmp/said /tmp/trim.json
cmp -n 33554432 /tmp/data $card || fail 'trim wrote outside of its area'

# A study that measures, and writes nothing.
emmclab '0 1' study $card --full --measure --bench /tmp/trim.json
says 'Measured: trim'
says '512 KiB sequential'
emmclab 2 study $card --measure --bench /tmp/speed.json
cmp -n 33554432 /tmp/data $card || fail 'study wrote something'
emmclab '0 1' study $card --bench /tmp/speed.json --bench /tmp/trim.json -o /out/report.html
[ -s /out/report.html ] || fail 'no report'

# A folder of a mounted filesystem; the device below it is refused then.
mkfs.ext4 -q -F -E lazy_itable_init=0 $card || fail mkfs.ext4
mount -t ext4 $card /mnt || fail mount
emmclab 4 bench $card --suite speed --size 32MiB --destroy --yes-i-mean mmcblk0
emmclab '0 1' bench /mnt --suite iozone --rows 128 --size 16MiB --json
expect 'CID below the folder' "$(value cid)" "$(attribute cid)"
expect 'filesystem of the folder' "$(value fstype)" ext4
[ "$(ls -A /mnt)" = lost+found ] || fail "the folder holds $(ls -A /mnt)"
umount /mnt || fail umount
