# A card that was filled without trim is slow; one fstrim makes it fast again. Both on ext4, at the card's own pace.
# trial: --profile small.toml --controller cqe
. /guest/library.sh
wait_card
card=/dev/mmcblk0

# 4 KiB writes a second, at random, each waited for, over a file that is there.
speed() {
    fio --name=speed --filename=/mnt/work --size=48m --rw=randwrite --bs=4k --direct=1 --ioengine=psync \
        --io_size=12m --randrepeat=0 --randseed="$1" --minimal >/tmp/fio || { cat /tmp/fio; fail 'fio'; }
    cut -d ';' -f 49 /tmp/fio
}

mkfs.ext4 -q -F -E nodiscard $card || fail 'mkfs.ext4'
mount -t ext4 -o nodiscard $card /mnt || fail 'mount'
fio --name=lay --filename=/mnt/work --size=48m --rw=write --bs=1m --direct=1 --ioengine=psync --minimal >/dev/null || fail 'fio'
new=$(speed 1)
echo "new: $new writes a second"

# Fill all that is left and write over half of it at random, then delete it: the file system is nearly empty, the card does
# not know.
left=$(($(df -k /mnt | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4) - 2048))
fio --name=fill --filename=/mnt/ballast --size=${left}k --rw=write --bs=1m --direct=1 --ioengine=psync --minimal >/dev/null || fail 'fio'
fio --name=age --filename=/mnt/ballast --size=${left}k --rw=randwrite --bs=16k --direct=1 --ioengine=psync --io_size=$((left / 4))k \
    --minimal >/dev/null || fail 'fio'
rm /mnt/ballast
sync
full=$(speed 2)
echo "full for the card: $full writes a second"
fstrim -v /mnt || fail 'fstrim'
sync
speed 3 >/dev/null
trimmed=$(speed 4)
echo "trimmed: $trimmed writes a second"
tell "figure new $new"
tell "figure full $full"
tell "figure trimmed $trimmed"
[ $((full * 3)) -lt $((new * 2)) ] || fail "filled without trim, the card does $full writes a second, new $new: not slower"
[ $((trimmed * 2)) -gt $((full * 3)) ] || fail "fstrim brought $full to $trimmed writes a second: no cure"
