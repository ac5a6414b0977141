# mmc-utils reads the same EXT_CSD, CSD, CID and status as the kernel, and changes the settings that are not one-time.
# trial: --profile generic-8g --controller cqe --no-delay --in-turn
# trial: --profile generic-8g --controller hs200 --no-delay --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0

mmc extcsd read $card >/tmp/registers || fail 'mmc extcsd read'
says() {
    grep -F -q "$1" /tmp/registers || { cat /tmp/registers; fail "mmc does not say \"$1\""; }
    echo "ok: mmc says \"$1\""
}
says 'Extended CSD rev 1.8 (MMC 5.1)'
says "Sector Count [SEC_COUNT: 0x$(printf %08x "$(cat /sys/block/mmcblk0/size)")]"
says "eMMC Life Time Estimation A [EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A]: $(ext_csd_byte 268)"
says "eMMC Pre EOL information [EXT_CSD_PRE_EOL_INFO]: $(ext_csd_byte 267)"
says 'eMMC Firmware Version: EMMCLAB1'

mmc cid read /sys/block/mmcblk0/device >/tmp/registers || fail 'mmc cid read'
expect date "$(attribute date)" 06/2020
says 'EL008G'
mmc csd read /sys/block/mmcblk0/device >/tmp/registers || fail 'mmc csd read'
says 'SPEC_VERS: 0x4'
mmc status get $card | tee /tmp/registers
says 'SEND_STATUS response: 0x00000900'

# Registers by number: ERASE_GROUP_DEF lasts until power goes, USER_WP stays.
mmc extcsd write 175 1 $card || fail 'mmc extcsd write'
expect ERASE_GROUP_DEF "$(ext_csd_byte 175)" 0x01
# mmc-utils does not look whether the card refuses.
sectors=$(ext_csd_byte 212)
mmc extcsd write 212 $((sectors ^ 1)) $card
expect 'a read-only register, written' "$(ext_csd_byte 212)" "$sectors"

mmc bootpart enable 1 1 $card || fail 'mmc bootpart enable'
expect PARTITION_CONFIG "$(ext_csd_byte 179)" 0x48
mmc bootbus set single_hs retain x8 $card || fail 'mmc bootbus set'
expect BOOT_BUS_CONDITIONS "$(ext_csd_byte 177)" 0x0e
mmc bkops_en auto $card || fail 'mmc bkops_en auto'
expect BKOPS_EN "$(ext_csd_byte 163)" 0x02
mmc cache disable $card || fail 'mmc cache disable'
expect CACHE_CTRL "$(ext_csd_byte 33)" 0x00
mmc cache enable $card || fail 'mmc cache enable'
expect CACHE_CTRL "$(ext_csd_byte 33)" 0x01
mmc gen_cmd read $card >/tmp/registers || fail 'mmc gen_cmd read'
expect 'lines of the general command' "$(grep -c . /tmp/registers)" 33
mmc sanitize $card || fail 'mmc sanitize'

power_cycle
expect 'PARTITION_CONFIG after a power cycle' "$(ext_csd_byte 179)" 0x48
expect 'BOOT_BUS_CONDITIONS after a power cycle' "$(ext_csd_byte 177)" 0x0e
expect 'BKOPS_EN after a power cycle' "$(ext_csd_byte 163)" 0x02
card_has PARTITION_CONFIG 0x48
card_has BOOT_BUS_CONDITIONS 0x0e
card_has BKOPS_EN 0x02
