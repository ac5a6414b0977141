# emmclab erase on a card of a real kernel: every kind by the card's own commands, refusals, a partition, the kernel's
# view afterwards; boot areas and a general purpose partition alone.
# trial: --profile generic-8g --controller cqe --no-delay --in-turn
# trial: --profile generic-8g --controller no-cqe --no-delay --in-turn
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0
head -c 1048576 /dev/urandom >/tmp/data
zeroes=$(head -c 1048576 /dev/zero | md5sum | cut -d ' ' -f 1)
data=$(md5sum </tmp/data | cut -d ' ' -f 1)

fill() {
    dd if=/tmp/data of=$card bs=1M seek="$1" oflag=direct conv=notrunc 2>/dev/null || fail "writing MiB $1"
}

content() {
    dd if=$card bs=1M count=1 skip="$1" iflag=direct 2>/dev/null | md5sum | cut -d ' ' -f 1
}

emmclab 0 erase $card
says sanitize

# Refused, and nothing is sent.
fill 8
emmclab 4 erase $card trim
emmclab 4 erase $card trim --destroy
complains '--yes-i-mean mmcblk0'
emmclab 4 erase $card trim --destroy --yes-i-mean mmcblk1
emmclab 4 erase ${card}boot0 trim --destroy --yes-i-mean mmcblk0
emmclab 3 erase /dev/mmcblk7 trim --destroy --yes-i-mean mmcblk7
emmclab 4 erase $card erase --range 4KiB:1MiB --destroy --yes-i-mean mmcblk0
mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0 $card 4096 || fail mkfs.ext4
mount -t ext4 $card /mnt || fail mount
emmclab 4 erase $card trim --destroy --yes-i-mean mmcblk0
complains 'in use'
umount /mnt || fail umount
expect 'MiB 8 so far' "$(content 8)" "$data"

# Each kind on a MiB of its own, with full ones around it.
place=16
for kind in discard trim erase secure-trim secure-erase; do
    for at in $((place - 1)) $place $((place + 1)); do fill $at; done
    emmclab 0 erase $card $kind --range ${place}MiB:1MiB --destroy --yes-i-mean mmcblk0
    says 'Complete'
    expect "$kind: after" "$(content $place)" "$zeroes"
    expect "$kind: before it" "$(content $((place - 1)))" "$data"
    expect "$kind: behind it" "$(content $((place + 1)))" "$data"
    place=$((place + 4))
done

# A partition by its number; the kernel sees the table of before.
printf 'label: gpt\nstart=2048, size=16384\nstart=32768, size=16384\n' | sfdisk -q $card || fail sfdisk
fill 2
fill 17
emmclab 4 erase ${card}p2 trim --destroy --yes-i-mean mmcblk0
emmclab 0 erase $card trim --partition 2 --destroy --yes-i-mean mmcblk0
expect 'partition 2' "$(content 17)" "$zeroes"
expect 'partition 1' "$(content 2)" "$data"

# All of it, out of the flash too. The kernel forgets what it had in memory, and the partitions.
emmclab 0 erase $card trim sanitize --destroy --yes-i-mean mmcblk0 -o /tmp/report.txt
says 'ssh-keygen -Y sign'
for at in 0 2 8 17; do expect "MiB $at afterwards" "$(content $at)" "$zeroes"; done
[ ! -e ${card}p1 ] || fail 'the kernel still has a partition'
expect 'the buffered start of the card' "$(dd if=$card bs=1M count=1 2>/dev/null | md5sum | cut -d ' ' -f 1)" "$zeroes"
fill 8
expect 'MiB 8, written again' "$(content 8)" "$data"

# Other areas. The kernel counts general purpose partitions from 0.
emmclab 4 erase $card trim --area gp1 --destroy --yes-i-mean mmcblk0gp0
complains 'has no area gp1'
emmclab 2 erase $card sanitize --area boot1 --destroy --yes-i-mean mmcblk0boot1
emmclab 0 plan hwpart $card --gp 1:16MiB -o /tmp/gp.json
emmclab 0 apply /tmp/gp.json $card --permanent "$(attribute serial)"
power_cycle
expect 'bytes of the general purpose partition' "$(blockdev --getsize64 ${card}gp0)" 16777216
for boot in boot0 boot1; do echo 0 >/sys/block/mmcblk0$boot/force_ro; done

fill_areas() {
    for device in mmcblk0 mmcblk0boot0 mmcblk0boot1 mmcblk0gp0; do
        dd if=/tmp/data of=/dev/$device bs=1M seek=1 oflag=direct conv=notrunc 2>/dev/null || fail "writing $device"
    done
}

# Every area has its content, except those that are named.
contents() {
    for device in mmcblk0 mmcblk0boot0 mmcblk0boot1 mmcblk0gp0; do
        wanted=$data
        case " $* " in *" $device "*) wanted=$zeroes ;; esac
        found=$(dd if=/dev/$device bs=1M count=1 skip=1 iflag=direct 2>/dev/null | md5sum | cut -d ' ' -f 1)
        expect "MiB 1 of $device" "$found" "$wanted"
    done
}

fill_areas
for boot in boot0 boot1; do echo 1 >/sys/block/mmcblk0$boot/force_ro; done

# Refused: another name, without one, a mounted partition, one that the kernel holds read-only for us.
emmclab 0 erase $card --area boot1
says '(boot1)'
emmclab 4 erase $card trim --area boot1 --destroy
complains '--yes-i-mean mmcblk0boot1'
emmclab 4 erase $card trim --area boot1 --destroy --yes-i-mean mmcblk0
emmclab 4 erase $card trim --area gp1 --destroy --yes-i-mean mmcblk0gp1
emmclab 4 erase $card erase --area gp1 --range 1MiB:4KiB --destroy --yes-i-mean mmcblk0gp0
echo 1 >/sys/block/mmcblk0gp0/force_ro
emmclab 4 erase $card trim --area gp1 --destroy --yes-i-mean mmcblk0gp0
complains 'read-only'
echo 0 >/sys/block/mmcblk0gp0/force_ro
contents

# One area after the other, with the user area mounted.
expect force_ro "$(cat /sys/block/mmcblk0boot1/force_ro)" 1
mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0 $card 1024 || fail mkfs.ext4
mount -t ext4 $card /mnt || fail mount
emmclab 0 erase $card trim --area boot1 --destroy --yes-i-mean mmcblk0boot1
says 'Complete: 4.0 MiB'
says 'samples read as erased memory'
umount /mnt || fail umount
contents mmcblk0boot1
expect 'force_ro of boot1 afterwards' "$(cat /sys/block/mmcblk0boot1/force_ro)" 1
expect 'force_ro of boot0 afterwards' "$(cat /sys/block/mmcblk0boot0/force_ro)" 1
emmclab 0 erase $card erase --area gp1 --range 1MiB:2MiB --destroy --yes-i-mean mmcblk0gp0
says 'Complete: 2.0 MiB'
contents mmcblk0boot1 mmcblk0gp0
emmclab 0 erase $card secure-erase --area boot0 --destroy --yes-i-mean mmcblk0boot0
contents mmcblk0boot0 mmcblk0boot1 mmcblk0gp0
for boot in boot0 boot1; do echo 0 >/sys/block/mmcblk0$boot/force_ro; done
fill_areas
contents

# Mounted, and protected by the card: refused.
mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0 ${card}gp0 1024 || fail mkfs.ext4
mount -t ext4 ${card}gp0 /mnt || fail mount
emmclab 4 erase $card trim --area gp1 --destroy --yes-i-mean mmcblk0gp0
complains 'in use'
umount /mnt || fail umount
emmclab 0 plan wp $card --boot boot2 --as power-on -o /tmp/wp.json
emmclab 0 apply /tmp/wp.json $card
emmclab 4 erase $card trim --area boot1 --destroy --yes-i-mean mmcblk0boot1
complains 'BOOT_WP_STATUS'
contents
