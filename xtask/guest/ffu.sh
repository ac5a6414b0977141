# emmclab ffu on a card of a real kernel, in every mode: refusals, a bad image, updates, and what a power cycle shows.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
# trial: --profile small.toml --controller hs200 --no-delay --in-turn
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0
serial=$(cat /sys/block/mmcblk0/device/serial)

# The virtual card's own form: magic, version, sectors, digest of the body. Its version, file, bytes of the body, and
# its sectors with the header, as two octal escapes.
firmware() {
    head -c "$3" /dev/urandom >/tmp/body
    {
        printf "emmclab firmware$1$4\\000\\000\\000\\000\\000\\000"
        sha256sum </tmp/body | cut -d ' ' -f 1 | xxd -r -p
        head -c 448 /dev/zero
        cat /tmp/body
    } >"$2"
    expect "bytes of $2" "$(wc -c <"$2")" $(($3 + 512))
}

large() {
    firmware "$1" "$2" 1048576 '\001\010'
}

small() {
    firmware "$1" "$2" 4096 '\011\000'
}

version() {
    attribute fwrev | xxd -r -p
}

large EMMCLAB2 /tmp/image2
{
    head -c 1048576 /tmp/image2
    head -c 512 /dev/zero
} >/tmp/bad

# What is refused.
emmclab 0 ffu $card
says 'The card takes firmware updates'
says EMMCLAB1
emmclab 4 ffu $card /tmp/image2 --for fe:ELTEST
complains "--permanent $serial"
emmclab 4 ffu $card /tmp/image2 --for 15:ELTEST --permanent "$serial"
emmclab 4 ffu $card /tmp/image2 --for fe:ELTEST:EMMCLAB0 --permanent "$serial"
emmclab 4 ffu ${card}boot0 /tmp/image2 --for fe:ELTEST --permanent "$serial"
mkfs.ext4 -q -F $card 65536 || fail mkfs.ext4
mount -t ext4 $card /mnt || fail mount
emmclab 4 ffu $card /tmp/image2 --for fe:ELTEST --permanent "$serial"
complains mounted
umount /mnt || fail umount

# A bad image changes nothing.
emmclab 1 ffu $card /tmp/bad --for fe:ELTEST --permanent "$serial"
says 'FFU_STATUS is 0x11: install error'
power_cycle
expect fwrev "$(version)" EMMCLAB1
emmclab 1 ffu $card --verify --for fe:ELTEST:EMMCLAB1

# Every mode, each from the version before.
before=EMMCLAB1
number=2
for mode in chunks stay open blocks blocks-stay; do
    case $mode in
    blocks*) small EMMCLAB$number /tmp/image ;;
    *) large EMMCLAB$number /tmp/image ;;
    esac
    /guest/emmclab ffu $card /tmp/image --for fe:ELTEST:$before --mode $mode --permanent "$serial" >/tmp/said 2>&1
    status=$?
    if [ $mode = open ] && [ $status = 3 ]; then
        # Linux 6.12 waits for the end of CMD25, and never sends CMD12. The card is told to end it, and is as before.
        says 'timed out'
        emmclab 0 ffu $card
        says $before
        mode='chunks after open'
        emmclab 0 ffu $card /tmp/image --for fe:ELTEST:$before --permanent "$serial"
    elif [ $status != 0 ]; then
        cat /tmp/said
        fail "mode $mode: exit code $status"
    fi
    says 'The card reports that it has installed the image'
    power_cycle
    expect "fwrev after mode $mode" "$(version)" EMMCLAB$number
    emmclab 0 ffu $card --verify --for fe:ELTEST:$before
    before=EMMCLAB$number
    number=$((number + 1))
done

# Killed within the mode: the card stays in it, the status says so, and the same command leaves it and completes.
large EMMCLAB$number /tmp/image
EMMCLAB_HOLD_AT=step:3:/tmp/held /guest/emmclab ffu $card /tmp/image --for fe:ELTEST:$before --mode stay \
    --permanent "$serial" >/tmp/said 2>&1 </dev/null &
killed=$!
tries=0
while [ ! -e /tmp/held ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { cat /tmp/said; fail 'the update does not reach its third command'; }
    sleep 0.1
done
kill -9 $killed
wait $killed
emmclab 1 ffu $card
says 'in the firmware update mode'
emmclab 0 ffu $card /tmp/image --for fe:ELTEST:$before --mode stay --permanent "$serial"
power_cycle
expect 'fwrev after a killed update' "$(version)" EMMCLAB$number

# The card is as before otherwise.
mount -t ext4 $card /mnt || fail 'mount after the updates'
umount /mnt || fail umount
emmclab 0 ffu $card
