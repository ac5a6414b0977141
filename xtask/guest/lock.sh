# emmclab lock on a card of a real kernel: refusals, a password, reads of a locked card, a power-up, a forced erase.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
# trial: --profile small.toml --controller hs200 --no-delay --in-turn
. /guest/library.sh
. /guest/says.sh
export COLUMNS=200
wait_card
card=/dev/mmcblk0
serial=$(cat /sys/block/mmcblk0/device/serial)
umask 077
echo 'first secret' >/tmp/one
printf 'second' >/tmp/two

# The first MiB as the card has it now.
sum() {
    dd if=$card bs=64k count=16 iflag=direct 2>/dev/null | sha256sum | cut -d ' ' -f 1
}

mkfs.ext4 -q -F $card 65536 || fail mkfs.ext4
mount -t ext4 $card /mnt || fail mount
emmclab 4 lock set $card --password /tmp/one --permanent "$serial"
complains mounted
umount /mnt || fail umount

dd if=/dev/urandom of=/tmp/content bs=64k count=16 2>/dev/null
dd if=/tmp/content of=$card bs=64k oflag=direct conv=fsync 2>/dev/null || fail 'write the content'
content=$(sha256sum </tmp/content | cut -d ' ' -f 1)
expect content "$(sum)" "$content"
echo 0 >/sys/block/mmcblk0boot0/force_ro
dd if=/tmp/content of=${card}boot0 bs=64k count=1 oflag=direct 2>/dev/null || fail 'write the boot area'
boot=$(dd if=${card}boot0 bs=64k count=1 iflag=direct 2>/dev/null | sha256sum)

# What is refused.
emmclab 0 lock status $card
says 'The card is not locked.'
emmclab 4 lock set $card --password /tmp/one
complains "--permanent $serial"
emmclab 4 lock set ${card}boot0 --password /tmp/one --permanent "$serial"
emmclab 1 lock on $card --password /tmp/one
says 'or the card has none'
emmclab 1 lock force-erase $card --destroy --yes-i-mean mmcblk0
says 'the card is not locked'

# A password; locked, nothing is read; unlocked, all is there.
emmclab 0 lock set $card --password /tmp/one --permanent "$serial"
says 'The card has the password. It is not locked until the next power-up.'
expect 'content with a password' "$(sum)" "$content"
emmclab 0 lock on $card --password /tmp/one
emmclab 1 lock status $card
says 'The card is locked'
refused 'a read of a locked card' dd if=$card of=/dev/null bs=64k count=1 iflag=direct
refused 'a write to a locked card' dd if=/tmp/content of=$card bs=64k count=1 oflag=direct
emmclab 1 lock off $card --password /tmp/two
says "the password is not the card's"
emmclab 0 lock off $card --password /tmp/one
expect 'content after unlocking' "$(sum)" "$content"
emmclab 0 lock set $card --old /tmp/one --password /tmp/two --lock --permanent "$serial"
emmclab 1 lock clear $card --password /tmp/one
emmclab 0 lock clear $card --password /tmp/two
says 'The card has no password, and is not locked.'
power_cycle
emmclab 0 lock status $card
expect 'content after a power-up' "$(sum)" "$content"

# A forced erase.
emmclab 0 lock set $card --password /tmp/one --lock --permanent "$serial"
emmclab 4 lock force-erase $card
emmclab 0 lock force-erase $card --destroy --yes-i-mean mmcblk0
says 'The card is erased, has no password, and is not locked.'
refused 'content after a forced erase' test "$(sum)" = "$content"
expect 'the boot area after a forced erase' "$(dd if=${card}boot0 bs=64k count=1 iflag=direct 2>/dev/null | sha256sum)" "$boot"
dd if=/tmp/content of=$card bs=64k oflag=direct conv=fsync 2>/dev/null || fail 'write after a forced erase'
expect 'content after that' "$(sum)" "$content"

# A card that is locked at power-up: SDHCI's driver goes on where tuning fails, and HS400 with the enhanced strobe has none.
emmclab 0 lock set $card --password /tmp/one --permanent "$serial"
power_reader=$(reader)
echo "$power_reader" >/sys/bus/pci/drivers/sdhci-pci/unbind
ask ctl cut >/dev/null || fail 'cut the power'
ask ctl on >/dev/null || fail 'give the power back'
echo "$power_reader" >/sys/bus/pci/drivers/sdhci-pci/bind
wait_card
dmesg | grep -i -E 'mmc0.*(tuning|new )' | tail -n 3
emmclab 1 lock status $card
emmclab 0 lock off $card --password /tmp/one
says "blockdev --rereadpt $card"
expect 'content after the power-up of a locked card' "$(sum)" "$content"
emmclab 0 lock clear $card --password /tmp/one
