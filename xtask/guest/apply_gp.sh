# A plan of general purpose partitions with attributes, carried out on a card of a real kernel; settings beside it.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0
serial=$(attribute serial)

# Settings that need no power cycle.
emmclab 0 plan cache $card off -o /tmp/cache.json
emmclab 0 apply /tmp/cache.json $card
expect CACHE_CTRL "$(ext_csd_byte 33)" 0x00
emmclab 0 plan bkops $card --manual -o /tmp/bkops.json
emmclab 4 apply /tmp/bkops.json $card
emmclab 0 apply /tmp/bkops.json $card --permanent "$serial"
expect BKOPS_EN "$(($(ext_csd_byte 163) & 1))" 1
emmclab 0 plan hwreset $card enable -o /tmp/hwreset.json
emmclab 0 apply /tmp/hwreset.json $card --permanent "$serial"
expect RST_n_FUNCTION "$(ext_csd_byte 162)" 0x01
emmclab 4 plan hwreset $card disable

# Without the commit a power cycle clears what mmc-utils wrote by a "dry run"; until then another plan is refused.
emmclab 0 plan hwpart $card --gp 1:16MiB:enh --gp 2:8MiB:sys -o /tmp/gp.json
mmc gp create -c 8192 3 0 0 $card >/dev/null || fail 'mmc gp create -c'
emmclab 4 apply /tmp/gp.json $card --permanent "$serial"
emmclab 4 plan hwpart $card --gp 1:16MiB:enh
power_cycle
emmclab 0 apply /tmp/gp.json $card --permanent "$serial"
power_cycle
emmclab 0 apply --verify /tmp/gp.json $card
expect 'bytes of the first partition' "$(blockdev --getsize64 ${card}gp0)" 16777216
expect 'bytes of the second partition' "$(blockdev --getsize64 ${card}gp1)" 8388608
expect PARTITIONS_ATTRIBUTE "$(ext_csd_byte 156)" 0x02
expect EXT_PARTITIONS_ATTRIBUTE "$(ext_csd_byte 52)" 0x10
head -c 1048576 /dev/urandom >/tmp/data
dd if=/tmp/data of=${card}gp0 bs=64k oflag=direct 2>/dev/null || fail 'writing to the first partition'
cmp -n 1048576 /tmp/data ${card}gp0 || fail 'the first partition holds something else'
card_has PARTITION_SETTING_COMPLETED 1
