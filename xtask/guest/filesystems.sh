# emmclab creates, mounts and measures ext4 and f2fs on a card of a real kernel: with the given options, only on the
# given range, and without leftovers, also after kill -9.
# trial: --profile generic-8g --controller cqe --no-delay --memory 512 --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
mib=160

# A pattern on the two MiB behind what may be written, and its sum.
dd if=/dev/urandom of=/tmp/behind bs=1M count=2 2>/dev/null
dd if=/tmp/behind of=$card bs=1M seek=$mib conv=fsync 2>/dev/null
behind() {
    echo 3 >/proc/sys/vm/drop_caches
    dd if=$card bs=1M skip=$mib count=2 iflag=direct 2>/dev/null | sha256sum
}
sum=$(sha256sum </tmp/behind) && [ -n "$sum" ] || fail 'sha256sum'
expect 'what lies behind, written' "$(behind)" "$sum"

fs="bench $card --suite fs --destroy --yes-i-mean mmcblk0 --size ${mib}MiB"

/guest/emmclab $fs --rows nodiscard,discard+commit=30 --json >/tmp/said 2>/tmp/complained </dev/null
status=$?
[ $status -lt 2 ] || { cat /tmp/complained; fail "bench: exit code $status"; }
# Of each filesystem that was made its options, as the kernel told them, in the order of the columns.
sed -n '/"made_filesystems"/,/^ *\]/s/^ *"\(fstype\|options\)": "\(.*\)",*$/\2/p' /tmp/said | paste -d ' ' - - >/tmp/made
cat /tmp/made
expect 'filesystems made' "$(cut -d ' ' -f 1 /tmp/made | tr '\n' ' ')" 'ext4 f2fs ext4 f2fs '
has() {
    sed -n "$1p" /tmp/made | tr ', ' '\n\n' | grep -q -x -F -- "$2" && echo yes || echo no
}
expect 'discard of both ext4' "$(has 1 discard) $(has 3 discard)" 'no yes'
expect 'commit=30 of both ext4' "$(has 1 commit=30) $(has 3 commit=30)" 'no yes'
expect 'discard of both f2fs' "$(has 2 discard) $(has 4 discard)" 'no yes'
grep -q 'has no commit=' /tmp/said || fail 'f2fs without commit= is not told'
nulls=$(sed -n '/"grids"/,/"figures"/p' /tmp/said | grep -c null)
expect 'figures that are missing' "$nulls" 0
expect 'what lies behind, afterwards' "$(behind)" "$sum"
expect 'mounts that are left' "$(grep -c mmcblk0 /proc/self/mounts)" 0

# Killed while f2fs is mounted.
/guest/emmclab $fs >/dev/null 2>&1 </dev/null &
bench=$!
while [ ! -d /proc/fs/f2fs/mmcblk0 ]; do
    kill -0 $bench 2>/dev/null || fail 'it ended before f2fs was mounted'
done
kill -9 $bench
wait $bench
expect 'f2fs after kill -9' "$(ls /proc/fs/f2fs)" ''
# mkfs opens the card exclusively.
mkfs.f2fs -q -f $card >/tmp/said 2>&1 || { cat /tmp/said; fail 'the card is not free after kill -9'; }
mount -t f2fs $card /mnt || fail 'mount'
# A folder of it as the target.
/guest/emmclab bench /mnt --suite fs --size 128MiB --json >/tmp/said 2>/tmp/complained </dev/null
[ $? -lt 2 ] || { cat /tmp/complained; fail 'bench of a folder'; }
expect 'the filesystem of the folder' "$(sed -n 's/^ *"fstype": "\(.*\)",$/\1/p' /tmp/said)" f2fs
expect 'files that are left' "$(ls -A /mnt)" ''
umount /mnt || fail 'umount'
