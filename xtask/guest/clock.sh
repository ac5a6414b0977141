# On one clock with the card: fio at several depths, a filesystem of a thousand files, ten power cuts below a writer.
# trial: --profile small.toml --controller cqe --clock virtual --twice --in-turn
# trial: --profile small.toml --controller hs200 --clock virtual --twice --in-turn
# trial: --profile small.toml --controller no-cqe --clock virtual --ns-per-instruction 4 --processors 2 --twice --in-turn
# trial: --profile small.toml --controller cqe --uml --twice
. /guest/library.sh
wait_card
card=/dev/mmcblk0
cat /proc/uptime

# Times as fio has them, at several depths.
for depth in 1 4 16 32; do
    fio --name=depth$depth --filename=$card --direct=1 --ioengine=libaio --iodepth=$depth --rw=randrw --bs=4k --size=32m \
        --io_size=1m --randseed=$depth --clocksource=clock_gettime | grep -E 'clat \(|IOPS' || fail 'fio'
done

# A filesystem with a thousand files.
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 $card || fail 'mkfs.ext4'
mount -t ext4 -o noatime $card /mnt || fail 'mount'
number=0
while [ $number -lt 1000 ]; do
    echo "$number" >"/mnt/$number"
    number=$((number + 1))
done
sync
rm /mnt/*5
fstrim -v /mnt || fail 'fstrim'
umount /mnt || fail 'umount'
cat /proc/uptime

# A filesystem is found as it was synced after each of ten cuts of power below a writer.
cut=0
while [ $cut -lt 10 ]; do
    cut=$((cut + 1))
    mount -t ext4 $card /mnt || fail "mount before cut $cut"
    echo "$cut" >/mnt/synced
    sync
    ask ctl "cut --in $((cut * 1734567))ns" >/dev/null || fail 'cutting the power'
    dd if=/dev/zero of=/mnt/lost bs=64k count=64 oflag=direct 2>/dev/null && fail "the writer outlived cut $cut"
    umount -l /mnt
    ask ctl on >/dev/null || fail 'giving power'
    reader >/sys/bus/pci/drivers/sdhci-pci/unbind
    reader >/sys/bus/pci/drivers/sdhci-pci/bind
    wait_card
    mount -t ext4 $card /mnt || fail "mount after cut $cut"
    expect "synced before cut $cut" "$(cat /mnt/synced)" "$cut"
    umount /mnt || fail 'umount'
done
cat /proc/uptime
