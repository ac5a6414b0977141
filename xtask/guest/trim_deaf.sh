# A card that accepts discards and ignores them: trims reach it, change nothing, and emmclab says so.
# trial: --profile deaf.toml --age aged.json --controller no-cqe --clock virtual
. /guest/library.sh
. /guest/says.sh
export COLUMNS=200
wait_card
card=/dev/mmcblk0
mkfs.ext4 -q -F -m 0 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 $card || fail mkfs.ext4
mount -t ext4 -o nodiscard $card /mnt || fail mount
full=$(state_number mapped_sectors)
emmclab 0 trim run /mnt
says 'What was discarded'
expect 'mapped sectors after a trim' "$(state_number mapped_sectors)" "$full"
emmclab 1 trim status $card --test /mnt --test-size 4MiB
says 'accepts discards and ignores them'
umount /mnt || fail umount
