# Write protection of the boot partitions and of groups of the user area, until power is lost or until it is cleared.
# trial: --profile generic-8g --controller cqe --no-delay --in-turn
# trial: --profile generic-8g --controller hs200 --no-delay --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0

write_boot0() {
    echo 0 >/sys/block/mmcblk0boot0/force_ro
    dd if=/dev/urandom of=${card}boot0 bs=4k count=1 oflag=direct
}
write_boot0 || fail 'boot0 cannot be written'
mmc writeprotect boot get $card >/tmp/protection || fail 'mmc writeprotect boot get'
grep -q 'partition 0 ro lock status: not locked' /tmp/protection || { cat /tmp/protection; fail 'boot0 is protected'; }
mmc writeprotect boot set $card || fail 'mmc writeprotect boot set'
expect BOOT_WP_STATUS "$(ext_csd_byte 174)" 0x05
md5=$(md5sum <${card}boot0)
refused 'a write to a protected boot partition' write_boot0
echo 3 >/proc/sys/vm/drop_caches
expect 'boot0, protected' "$(md5sum <${card}boot0)" "$md5"
power_cycle
expect 'BOOT_WP_STATUS after a power cycle' "$(ext_csd_byte 174)" 0x00
write_boot0 || fail 'boot0 cannot be written after a power cycle'

# The third group of 8 MiB of the user area.
group=$((8 << 20 >> 9))
write_user() {
    dd if=/dev/urandom of=$card bs=4k count=1 seek=$(($1 / 8)) oflag=direct conv=notrunc
}
mmc writeprotect user set temp $((2 * group)) $group $card || fail 'mmc writeprotect user set'
mmc writeprotect user get $card >/tmp/protection || fail 'mmc writeprotect user get'
cat /tmp/protection
refused 'a write to a protected group' write_user $((2 * group))
refused 'a write to the end of a protected group' write_user $((3 * group - 8))
write_user $((2 * group - 8)) || fail 'the group before cannot be written'
write_user $((3 * group)) || fail 'the group behind cannot be written'
mmc writeprotect user set none $((2 * group)) $group $card || fail 'mmc writeprotect user set none'
write_user $((2 * group)) || fail 'the group cannot be written again'
mmc writeprotect user set pwron $((4 * group)) $group $card || fail 'mmc writeprotect user set pwron'
refused 'a write to a group protected until power goes' write_user $((4 * group))
# mmc-utils does not look whether the card refuses to take that back.
mmc writeprotect user set none $((4 * group)) $group $card
refused 'a write to that group all the same' write_user $((4 * group))
power_cycle
write_user $((4 * group)) || fail 'the group cannot be written after a power cycle'
card_has BOOT_WP_STATUS 0
