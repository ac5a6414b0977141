# `emmclab trace who --light` lets the kernel sum up writes into files (hist triggers): every byte of two programs is in
# their rows and files, nothing is in the ring buffer, and what the kernel had before is there afterwards.
# trial: --profile small.toml --controller cqe --clock virtual
. /guest/library.sh
wait_card
tracing=/sys/kernel/tracing
mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/mmcblk0 64M || fail 'mkfs.ext4'
mount -t ext4 /dev/mmcblk0 /mnt || fail 'mount'
[ -e $tracing/events/ext4/ext4_da_write_end/hist ] || { echo 'this kernel has no hist triggers'; exit 77; }

/guest/emmclab trace who --light --every 1s --log /tmp/log --json >/tmp/result &
recorder=$!
trigger=$tracing/instances/emmclab-$recorder/events/ext4/ext4_da_write_end/trigger
until grep -q '^hist:' "$trigger" 2>/dev/null; do sleep 0.01; done
cp /bin/busybox /tmp/one
size=$(wc -c </tmp/one)
cp /tmp/one /mnt/one
# In the second interval.
sleep 1
dd if=/dev/zero of=/mnt/two bs=3000 count=500 2>/dev/null || fail 'dd'
events=$(cat "${trigger%/events/*}"/per_cpu/cpu*/stats | sed -n 's/^entries: //p' | tr '\n' ' ')
expect 'events in the buffer' "$events" '0 '
kill -INT $recorder
wait $recorder || fail "trace who: exit code $?"
[ ! -e "${trigger%/events/*}" ] || fail 'the instance is left'

number() {
    tr ',' '\n' </tmp/result | grep "\"$1\":" | tr -dc '0-9 .\n' | tr '\n' ' '
}
grep -q '"counted_by": *"sums of the kernel"' /tmp/result || fail "not by sums: $(cat /tmp/result)"
for bytes in "$size" 1500000; do
    case " $(number file_written_bytes) " in *" $bytes "*) ;; *) fail "no thread wrote $bytes bytes: $(cat /tmp/result)" ;; esac
    case " $(number written_bytes) " in *" $bytes "*) ;; *) fail "no file has $bytes bytes: $(cat /tmp/result)" ;; esac
done
[ "$(wc -l </tmp/log)" -ge 2 ] || fail "the log has $(wc -l </tmp/log) lines"
echo "ok: $size and 1500000 bytes, each event$(number event_ns)ns"
