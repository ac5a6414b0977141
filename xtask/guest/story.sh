# A card that was filled without trim is slow; one fstrim makes it fast again. Both on ext4; what is measured runs ten times slower than
# the card would be, so that the emulated processor counts little; what fills the card does not wait for it.
# trial: --profile small.toml --controller cqe --no-delay
. /guest/library.sh
wait_card
card=/dev/mmcblk0

# 4 KiB writes a second, at random, each waited for, over a file that is there.
speed() {
    ask ctl speed 10 --delays true >/dev/null || fail 'the card keeps no time'
    fio --name=speed --filename=/mnt/work --size=1g --rw=randwrite --bs=4k --direct=1 --ioengine=psync \
        --io_size=16m --randrepeat=0 --randseed="$1" --minimal >/tmp/fio || { cat /tmp/fio; fail 'fio'; }
    ask ctl speed --delays false >/dev/null || fail 'the card cannot be hurried'
    cut -d ';' -f 49 /tmp/fio
}

mkfs.ext4 -q -F -E nodiscard $card || fail 'mkfs.ext4'
mount -t ext4 -o nodiscard $card /mnt || fail 'mount'
fio --name=lay --filename=/mnt/work --size=1g --rw=write --bs=1m --direct=1 --ioengine=psync --minimal >/dev/null || fail 'fio'
new=$(speed 1)
echo "new: $new writes a second"

# Fill all that is left and write over everything at random, then delete the filling: the file system is half empty, the
# card does not know.
left=$(($(df -k /mnt | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4) - 2048))
age() {
    fio --name=age --filename="$1" --size="$2" --rw="$3" --bs="$4" --direct=1 --ioengine=psync --minimal >/dev/null || fail 'fio'
}
age /mnt/ballast ${left}k write 1m
age /mnt/ballast ${left}k randwrite 32k
age /mnt/work 1g randwrite 32k
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
