# ext4 on LVM on dm-crypt on the card, which was full and never trimmed: emmclab names the layer that stops discards,
# and after that one lets them pass the next one. With both open a trim makes the card's mapping small and its writes
# fast again.
# trial: --profile tight.toml --age aged.json --controller no-cqe --clock virtual
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0
export DM_DISABLE_UDEV=1
for module in dm-mod dm-crypt xts algif_skcipher; do
    modprobe $module || fail "modprobe $module"
done

# A write of 4 KiB at random in a file of 16 MiB: sets write_us.
measure() {
    write_us=$(fio_us write --filename=/mnt/measured --size=16m --rw=randwrite --bs=4k --io_size=1m --randseed="$1")
    echo "$2: 4 KiB written in $write_us us"
}

printf secret >/tmp/key
cryptsetup luksFormat --batch-mode --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 $card /tmp/key || fail luksFormat
cryptsetup open --key-file /tmp/key $card secret || fail open
lvm pvcreate -q /dev/mapper/secret >/tmp/lvm 2>&1 && lvm vgcreate -q vg /dev/mapper/secret >>/tmp/lvm 2>&1 &&
    lvm lvcreate -q -W n -y -l 100%FREE -n data vg >>/tmp/lvm 2>&1 || { cat /tmp/lvm; fail LVM; }
mkfs.ext4 -q -F -m 0 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/mapper/vg-data || fail mkfs.ext4
mount -t ext4 -o nodiscard /dev/mapper/vg-data /mnt || fail mount
fio --name=lay --filename=/mnt/measured --size=16m --rw=write --bs=16k --direct=1 --minimal >/dev/null || fail 'laying out'
sync
measure 1 'never trimmed'
aged_us=$write_us

# The layer is named, whichever of the places is given, and a trim says what to ask.
for place in $card /mnt /dev/vg/data; do
    emmclab 1 trim status $place
    says 'dm-0 (secret, dm-crypt) stops the discards of /mnt'
done
says 'cryptsetup refresh --allow-discards --persistent secret'
# Making LUKS has trimmed the place of its header.
untouched=$(state_number trimmed_units)
emmclab 2 trim run /mnt
grep -q 'its discards do not reach the card' /tmp/complained || { cat /tmp/complained; fail 'trim run says nothing of the layer'; }
expect 'trimmed units after a trim that is blocked' "$(state_number trimmed_units)" "$untouched"

# As it advised.
cryptsetup refresh --allow-discards --persistent --key-file /tmp/key secret || fail refresh
# The volume keeps the limits of the time when it was activated.
emmclab 1 trim status $card
says 'dm-1 (vg-data, LVM) stops the discards of /mnt'
says 'dmsetup table vg-data | dmsetup load vg-data && dmsetup resume vg-data'
lvm lvchange --refresh vg/data || fail 'lvchange --refresh'
expect 'the limit after lvchange --refresh' "$(cat /sys/block/dm-1/queue/discard_max_bytes)" 0
dmsetup table vg-data | dmsetup load vg-data && dmsetup resume vg-data || fail 'load the table again'

# Nothing stops them any more, while the filesystem is mounted; now it is only that nobody trims.
emmclab 1 trim status $card
says 'Nobody trims /mnt: the card keeps what was deleted there'
full=$(state_number mapped_sectors)
emmclab 0 trim run /mnt
says 'What was discarded'
holds "the card's mapping shrinks to what is in use" "$(state_number mapped_sectors) < $full / 2"
measure 2 'trimmed through both layers'
holds 'the speed returns' "$write_us * 3 < $aged_us"
umount /mnt || fail umount
e2fsck -f -n /dev/mapper/vg-data >/tmp/checked 2>&1 || { cat /tmp/checked; fail 'the file system is not clean'; }
