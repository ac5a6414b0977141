# One-time settings of a card: partitions, enhanced areas, write reliability, hardware reset, manual BKOPS.
# trial: --profile generic-8g --controller cqe --no-delay --in-turn
# trial: --profile generic-8g --controller no-cqe --no-delay --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
before=$(blockdev --getsize64 $card)

# 16 MiB as first general partition, enhanced; the first 32 MiB of the user area enhanced; reliable writes to both.
refused 'completing a dry run' mmc gp create -n 16384 1 1 0 $card
expect 'PARTITION_SETTING_COMPLETED after a dry run' "$(ext_csd_byte 155)" 0x00
mmc gp create -c 16384 1 1 0 $card || fail 'mmc gp create -c'
mmc enh_area set -c 0 32768 $card || fail 'mmc enh_area set -c'
mmc write_reliability set -c 0 $card || fail 'mmc write_reliability set -c'
mmc write_reliability set -y 1 $card || fail 'mmc write_reliability set -y'
mmc hwreset enable $card || fail 'mmc hwreset enable'
expect RST_n_FUNCTION "$(ext_csd_byte 162)" 0x01
refused 'hwreset disable after enable' mmc hwreset disable $card
mmc bkops_en manual $card || fail 'mmc bkops_en manual'

power_cycle
expect PARTITION_SETTING_COMPLETED "$(ext_csd_byte 155)" 0x01
after=$(blockdev --getsize64 $card)
# Two bits a cell: what is enhanced costs twice its size.
expect 'bytes of the user area' "$after" $((before - 2 * 16777216 - 33554432))
expect 'bytes of the general partition' "$(blockdev --getsize64 ${card}gp0)" 16777216
expect enhanced_area_offset "$(attribute enhanced_area_offset)" 0
expect enhanced_area_size "$(attribute enhanced_area_size)" 32768
expect 'WR_REL_SET' "$(($(ext_csd_byte 167) & 3))" 3
expect 'BKOPS_EN' "$(($(ext_csd_byte 163) & 1))" 1
head -c 1048576 /dev/urandom >/tmp/data
dd if=/tmp/data of=${card}gp0 bs=64k oflag=direct 2>/dev/null || fail 'writing to the general partition'
cmp -n 1048576 /tmp/data ${card}gp0 || fail 'the general partition holds something else'

refused 'a second enhanced area' mmc enh_area set -y 0 8192 $card
refused 'a second general partition' mmc gp create -y 8192 2 0 0 $card
refused 'reliable writes, once more' mmc write_reliability set -y 2 $card
power_cycle
expect 'bytes of the user area, later' "$(blockdev --getsize64 $card)" "$after"
card_has PARTITION_SETTING_COMPLETED 1
card_has RST_n_FUNCTION 1
card_has PARTITIONS_ATTRIBUTE 3
card_has SEC_COUNT $((after / 512))
