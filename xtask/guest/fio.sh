# fio, flashbench and iozone run unchanged, to the end, and fio verifies its writes.
# trial: --profile small.toml --controller cqe --in-turn
# trial: --profile small.toml --controller hs200 --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
fio --name=verify --filename=$card --size=24m --rw=randwrite --bsrange=4k-128k --direct=1 --ioengine=libaio --iodepth=16 \
    --verify=crc32c --do_verify=1 --verify_fatal=1 --minimal >/tmp/fio || { cat /tmp/fio; fail 'fio --verify'; }
echo 'ok: fio verified'
flashbench -a $card --blocksize=4096 --count=8 >/tmp/flashbench || fail 'flashbench -a'
grep -q '^align' /tmp/flashbench || fail 'flashbench -a printed nothing'
cat /tmp/flashbench
flashbench -O --erasesize=$((1 << 20)) --blocksize=$((64 << 10)) --open-au-nr=4 $card >/tmp/flashbench || fail 'flashbench -O'
grep -q 'M/s' /tmp/flashbench || fail 'flashbench -O printed nothing'
cat /tmp/flashbench
if [ -x /usr/bin/iozone ]; then
    mkfs.ext4 -q -F $card || fail 'mkfs.ext4'
    mount -t ext4 $card /mnt || fail 'mount'
    iozone -e -I -a -s 8m -r 4k -r 512k -i 0 -i 1 -i 2 -f /mnt/iozone >/tmp/iozone || { cat /tmp/iozone; fail 'iozone'; }
    grep -E '^ +8192' /tmp/iozone || fail 'iozone printed nothing'
    umount /mnt || fail 'umount'
else
    echo 'SKIPPED: iozone is not in this guest'
fi
