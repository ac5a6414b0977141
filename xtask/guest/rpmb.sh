# emmclab rpmb on a card of a real kernel, beside mmc-utils: each reads what the other wrote; refusals; a power cycle.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
# trial: --profile small.toml --controller hs200 --no-delay --in-turn
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0
rpmb=${card}rpmb
serial=$(cat /sys/block/mmcblk0/device/serial)
umask 077
printf AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH >/tmp/key
printf AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHX >/tmp/other
head -c 2560 /dev/urandom >/tmp/blocks
head -c 256 /dev/urandom >/tmp/one

# The key, once.
emmclab 0 rpmb counter $card
says 'No key is programmed'
emmclab 4 rpmb key $rpmb --key /tmp/key
complains "--permanent $serial"
emmclab 4 rpmb key $rpmb --key /tmp/key --permanent 0x1
emmclab 4 rpmb key ${card}boot0 --key /tmp/key --permanent "$serial"
emmclab 0 rpmb key $rpmb --key /tmp/key --permanent "$serial"
emmclab 4 rpmb key $rpmb --key /tmp/other --permanent "$serial"
complains 'a key is programmed already'
emmclab 0 rpmb counter $rpmb
says 'Not authenticated'
emmclab 0 rpmb counter $rpmb --key /tmp/key
says 'Authenticated'
emmclab 1 rpmb counter $rpmb --key /tmp/other

# Writes need the name, and the right key.
emmclab 4 rpmb write $rpmb 3 /tmp/blocks --key /tmp/key
emmclab 4 rpmb write $rpmb 3 /tmp/blocks --key /tmp/key --destroy
complains '--yes-i-mean mmcblk0'
emmclab 4 rpmb write $rpmb 3 /tmp/blocks --key /tmp/key --destroy --yes-i-mean mmcblk1
emmclab 4 rpmb write $rpmb 3 /tmp/blocks --key /tmp/other --destroy --yes-i-mean mmcblk0
emmclab 4 rpmb write $rpmb 510 /tmp/blocks --key /tmp/key --destroy --yes-i-mean mmcblk0
expect 'the counter' "$(mmc rpmb read-counter $rpmb | sed 's/.*: *//')" 0x00000000
emmclab 0 rpmb write $rpmb 3 /tmp/blocks --key /tmp/key --destroy --yes-i-mean mmcblk0
says '10 of 10 blocks'
expect 'the counter' "$(mmc rpmb read-counter $rpmb | sed 's/.*: *//')" 0x00000006

# Each reads what the other wrote.
mmc rpmb read-block $rpmb 3 10 /tmp/found /tmp/key || fail 'mmc rpmb read-block'
cmp /tmp/blocks /tmp/found || fail 'mmc reads something else'
mmc rpmb write-block $rpmb 40 /tmp/one /tmp/key || fail 'mmc rpmb write-block'
emmclab 0 rpmb read $rpmb 40 1 -o /tmp/back --key /tmp/key
says 'Authenticated'
cmp /tmp/one /tmp/back || fail 'emmclab reads something else'
emmclab 1 rpmb read $rpmb 40 1 -o /tmp/forged --key /tmp/other
[ ! -e /tmp/forged ] || fail 'what is not authentic was saved'
emmclab 0 rpmb read $rpmb 0 512 -o /tmp/all --key /tmp/key

# The rest of the card may be in use, and is untouched by it.
mkfs.ext4 -q -F $card 4096 || fail mkfs.ext4
mount -t ext4 $card /mnt || fail mount
emmclab 0 rpmb write $card 3 /tmp/one --key /tmp/key --destroy --yes-i-mean mmcblk0
umount /mnt || fail umount

power_cycle
emmclab 0 rpmb counter $rpmb --key /tmp/key
says 'Write counter: 8'
emmclab 0 rpmb read $rpmb 3 1 -o /tmp/again --key /tmp/key
cmp /tmp/one /tmp/again || fail 'the block holds something else after a power cycle'
emmclab 4 rpmb key $rpmb --key /tmp/other --permanent "$serial"

# Secure write protection: the kernel's own requests are refused while it holds.
emmclab 0 rpmb protect $rpmb
says 'Secure write protection is off'
emmclab 4 rpmb protect $rpmb allow --key /tmp/key
emmclab 1 rpmb protect $rpmb on --key /tmp/other
emmclab 0 rpmb protect $rpmb on --key /tmp/key
says 'is on: no host can change write protection'
echo 1 >/sys/block/mmcblk0boot0/ro_lock_until_next_power_on 2>/dev/null
expect 'the lock of boot areas while it holds' "$(cat /sys/block/mmcblk0boot0/ro_lock_until_next_power_on)" 0
emmclab 0 rpmb protect $rpmb allow --key /tmp/key
says 'changes are allowed'
echo 1 >/sys/block/mmcblk0boot0/ro_lock_until_next_power_on || fail 'the lock of boot areas while it is allowed'
emmclab 0 rpmb protect $rpmb deny --key /tmp/key
power_cycle
emmclab 0 rpmb protect $rpmb --key /tmp/key
says 'is on: no host can change write protection'
expect 'boot areas after a power cycle' "$(mmc extcsd read $card | sed -n 's/.*BOOT_WP_STATUS.*\(0x..\).*/\1/p')" 0x05
emmclab 0 rpmb protect $rpmb off --key /tmp/key
