# Plans carried out on a card of a real kernel: hardware partitions before and after a power cycle, refusals, boot A/B,
# protection of boot areas and of groups.
# trial: --profile apalis-imx8qm-16g --controller cqe --no-delay --in-turn
# trial: --profile apalis-imx8qm-16g --controller no-cqe --no-delay --in-turn
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0
serial=$(attribute serial)

# The board vendor's story: too large is refused, the maximum is planned.
emmclab 4 plan hwpart $card --enh-user 0s:31080448s --wrrel off
emmclab 0 plan hwpart $card --enh-user max --wrrel off -o /tmp/plan.json
says '7512 MiB'
emmclab 1 apply --verify /tmp/plan.json $card
says 'nothing done'

# Refused, and nothing is sent: without the serial number, with another one, for a part of the card, in use.
emmclab 4 apply /tmp/plan.json $card
complains "--permanent $serial"
emmclab 4 apply /tmp/plan.json $card --permanent 0xdeadbeef
emmclab 4 apply /tmp/plan.json ${card}boot0 --permanent "$serial"
emmclab 3 apply /tmp/plan.json /dev/mmcblk7 --permanent "$serial"
emmclab 3 apply /tmp/plan.json /dev/null --permanent "$serial"
mkfs.ext4 -q -F -E lazy_itable_init=0 $card 65536 || fail mkfs.ext4
mount -t ext4 $card /mnt || fail mount
emmclab 4 apply /tmp/plan.json $card --permanent "$serial"
complains 'in use'
umount /mnt || fail umount
expect 'PARTITION_SETTING_COMPLETED so far' "$(ext_csd_byte 155)" 0x00
expect 'ENH_SIZE_MULT so far' "$(ext_csd_byte 140)" 0x00
expect 'WR_REL_SET so far' "$(ext_csd_byte 167)" 0x1f

# Carried out; in effect after the power cycle.
emmclab 0 apply /tmp/plan.json $card --permanent "$serial"
says 'committed, power cycle due'
emmclab 1 apply --verify /tmp/plan.json $card
says 'committed, power cycle due'
emmclab 4 apply /tmp/plan.json $card --permanent "$serial"
power_cycle
emmclab 0 apply --verify /tmp/plan.json $card
says 'done: the card is as planned'
expect 'bytes of the user area' "$(blockdev --getsize64 $card)" 7876902912
expect enhanced_area_size "$(attribute enhanced_area_size)" 7692288
expect WR_REL_SET "$(ext_csd_byte 167)" 0x1e
emmclab 4 apply /tmp/plan.json $card --permanent "$serial"
emmclab 4 plan hwpart $card --gp 1:8MiB

# A/B: the kernel and the card agree.
emmclab 0 plan boot $card --from boot1 --ack on -o /tmp/a.json
emmclab 0 apply /tmp/a.json $card
expect PARTITION_CONFIG "$(ext_csd_byte 179)" 0x48
emmclab 0 plan boot $card --switch -o /tmp/b.json
emmclab 0 apply /tmp/b.json $card
power_cycle
expect 'PARTITION_CONFIG after a power cycle' "$(ext_csd_byte 179)" 0x50
emmclab 0 apply --verify /tmp/b.json $card

# Protection: of groups until power is lost and for ever, of a boot area for ever.
dd if=/dev/zero of=$card bs=1M seek=64 count=1 oflag=direct 2>/dev/null || fail 'writing'
emmclab 0 plan wp $card --user 64MiB:16MiB --as power-on -o /tmp/until.json
emmclab 0 apply /tmp/until.json $card
refused 'a write to a protected group' dd if=/dev/zero of=$card bs=1M seek=64 count=1 oflag=direct
power_cycle
dd if=/dev/zero of=$card bs=1M seek=64 count=1 oflag=direct 2>/dev/null || fail 'writing after a power cycle'
emmclab 1 apply --verify /tmp/until.json $card
emmclab 4 plan wp $card --user 65MiB:16MiB --as permanent
emmclab 0 plan wp $card --user 64MiB:16MiB --as permanent -o /tmp/ever.json
emmclab 4 apply /tmp/ever.json $card
emmclab 0 apply /tmp/ever.json $card --permanent "$serial"
expect 'USER_WP afterwards' "$(ext_csd_byte 171)" 0x00
emmclab 0 plan wp $card --boot boot2 --as permanent -o /tmp/boot2.json
emmclab 0 apply /tmp/boot2.json $card --permanent "$serial"
power_cycle
emmclab 0 apply --verify /tmp/ever.json $card
emmclab 0 apply --verify /tmp/boot2.json $card
refused 'a write to a group that is protected for ever' dd if=/dev/zero of=$card bs=1M seek=64 count=1 oflag=direct
dd if=/dev/zero of=$card bs=1M seek=80 count=1 oflag=direct 2>/dev/null || fail 'writing beside the protected groups'
expect BOOT_WP_STATUS "$(ext_csd_byte 174)" 0x08
