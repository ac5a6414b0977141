. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0

# What U-Boot committed is in effect.
expect 'bytes of the user area' "$(blockdev --getsize64 $card)" "$USER_BYTES"

# Two slots; the second one is chosen.
for slot in 0 1; do
    echo 0 >/sys/block/mmcblk0boot$slot/force_ro
    printf 'slot %s' $slot | dd of=${card}boot$slot bs=512 conv=sync,fsync 2>/dev/null || fail "slot $slot"
done
emmclab 0 plan boot $card --from boot2 --ack on -o /tmp/plan.json
emmclab 0 apply /tmp/plan.json $card
