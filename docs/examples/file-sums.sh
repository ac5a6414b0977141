# `trace who --light` counts every byte that two programs write, by thread and file, from events and from sums of the kernel
# (hist triggers, --sums); then what a write of 4 KiB into the page cache costs with each. Run by hand in QEMU (docs/trace.md).
. /guest/library.sh
wait_card
mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/mmcblk0 64M || fail 'mkfs.ext4'
mount -t ext4 /dev/mmcblk0 /mnt || fail 'mount'

# Writes while it counts: count OPTIONS...
count() {
    rm -f /mnt/one /mnt/two /tmp/log /tmp/all
    # shellcheck disable=SC2086 # Without options there is no word.
    /guest/emmclab trace who --light $1 --every 2s --for 6s --log /tmp/log --json >/tmp/all &
    sleep 1
    dd if=/dev/zero of=/mnt/one bs=3000 count=500 2>/dev/null || fail 'dd'
    sleep 2
    cp /bin/busybox /mnt/two || fail 'cp'
    wait $! || fail "who --light $1: exit code $?"
    for size in 1500000 "$(wc -c </bin/busybox)"; do
        grep -q "\"written_bytes\": $size,*\$" /tmp/all || fail "$size bytes are in no row: $(cat /tmp/all)"
    done
    [ "$(wc -l </tmp/log)" = 3 ] || fail "the log: $(cat /tmp/log)"
    grep '"counted_by"\|"event_ns"\|"cost_percent"\|"lost_events"' /tmp/all
}
count ''
count --sums

# More events in one interval than the buffer has room for: it is read before it is full.
/guest/emmclab trace who --light --for 30s --json >/tmp/all &
for burst in 1 2 3 4; do
    sleep 6
    dd if=/dev/zero of=/mnt/one bs=1k count=32768 conv=notrunc 2>/dev/null || fail 'dd'
done
wait $! || fail "who --light: exit code $?"
grep -q '"written_bytes": 134217728,*$' /tmp/all || fail "not all was counted: $(cat /tmp/all)"
grep '"lost_events"\|"events"' /tmp/all

# The time of a write: write OPTIONS...; none is without anything that counts.
write() {
    if [ "$1" != none ]; then
        # shellcheck disable=SC2086
        /guest/emmclab trace who --light $1 --for 60s --json >/tmp/all &
        sleep 3
    fi
    sync
    seconds=$(LC_ALL=C dd if=/dev/zero of=/mnt/one bs=4k count=8192 conv=notrunc 2>&1 | sed -n 's/.* copied, \([0-9.]*\) s.*/\1/p')
    if [ "$1" != none ]; then
        kill -INT $! && wait $!
        grep -q '"written_bytes": 33554432,*$' /tmp/all || fail "not all was counted: $(cat /tmp/all)"
    fi
    none=${none:-$seconds}
    awk -v options="$1" -v seconds="$seconds" -v none="$none" 'BEGIN {
        printf "a write with %-7s %.3f us, %.3f more\n", options, seconds / 8192 * 1e6, (seconds - none) / 8192 * 1e6 }'
}
dd if=/dev/zero of=/mnt/one bs=4k count=8192 2>/dev/null || fail 'dd'
for options in none '' --sums none '' --sums; do
    write "$options"
done
umount /mnt
