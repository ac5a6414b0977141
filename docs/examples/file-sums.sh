# Sums of the kernel (hist triggers) as `trace who --light` asks for them: every byte that two programs write is in them, by
# thread and file, and nothing is in the ring buffer. Run by hand in QEMU (docs/trace.md).
. /guest/library.sh
wait_card
instance=/sys/kernel/tracing/instances/sums
mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/mmcblk0 64M || fail 'mkfs.ext4'
mount -t ext4 /dev/mmcblk0 /mnt || fail 'mount'
mkdir $instance || fail 'an instance of tracefs'
written=$instance/events/ext4/ext4_da_write_end
echo 'hist:keys=common_pid.execname,dev,ino:vals=copied:size=16384' >$written/trigger || fail 'this kernel has no hist triggers'
dd if=/dev/zero of=/mnt/one bs=3000 count=500 2>/dev/null || fail 'dd'
cp /bin/busybox /mnt/two || fail 'cp'
for size in 1500000 "$(wc -c </bin/busybox)"; do
    grep -q "copied: *$size\$" $written/hist || fail "$size bytes are in no sum: $(cat $written/hist)"
done
grep copied: $written/hist
events=$(cat $instance/per_cpu/cpu*/stats | awk '/^entries: / { sum += $2 } END { print sum }')
[ "$events" = 0 ] || fail "$events events in the buffer"
rmdir $instance || fail 'the instance stays'
