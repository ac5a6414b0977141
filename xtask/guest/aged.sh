# A card that was full and never trimmed is slow; one fstrim makes it as fast as a new one.
# trial: --profile tight.toml --age aged.json --controller no-cqe --clock virtual --in-turn
# trial: --profile tight.toml --age aged.json --controller no-cqe --uml --twice --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0

# Makes a file system that tells the card nothing, with the file that is measured in. At no pace: only what comes of it counts.
make() {
    mkfs.ext4 -q -F -m 0 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 $card || fail 'mkfs.ext4'
    mount -t ext4 -o nodiscard $card /mnt || fail 'mount'
    fio --name=lay --filename=/mnt/measured --size=16m --rw=write --bs=16k --direct=1 --minimal >/dev/null || fail 'laying out'
    sync
}

# What a write of 4 KiB somewhere in the file takes, and what the flash programs for it; and what a read takes.
# The slower the clock, the less counts what this machine adds: measure SEED WHAT DILATION.
measure() {
    host=$(state_number host_units)
    flash=$(state_number unit_programs)
    set_dilation "$3"
    write_us=$(fio_us write --filename=/mnt/measured --size=16m --rw=randwrite --bs=4k --io_size=1m --randseed="$1")
    set_dilation 100
    read_us=$(fio_us read --filename=/mnt/measured --size=16m --rw=randread --bs=4k --io_size=256k --randseed="$1")
    set_dilation 0
    host=$(($(state_number host_units) - host))
    flash=$(($(state_number unit_programs) - flash))
    amplification=$(awk "BEGIN { printf \"%.2f\", $flash / $host }")
    echo "$2: 4 KiB written in $write_us us, read in $read_us us; write amplification $amplification"
}

# The card has been written twice over, in small pieces, and was never told of anything that was deleted.
set_dilation 0
make
measure 1 aged 10
aged_write=$write_us aged_read=$read_us aged_amplification=$amplification

fstrim -v /mnt || fail 'fstrim'
measure 2 trimmed 40
trimmed_write=$write_us trimmed_read=$read_us trimmed_amplification=$amplification

# As new: nothing on it at all.
umount /mnt || fail 'umount'
blkdiscard -f $card || fail 'blkdiscard'
make
measure 3 new 40
new_write=$write_us new_read=$read_us new_amplification=$amplification
simulated=$(ask simulate '{"seed":1,"phases":[{"kind":"random","amount":"1MiB","range":["0%","12%"]}]}' | cut -d ' ' -f 3)
echo "simulated, on a card that was never written: 4 KiB written in $simulated us"

holds 'aged, a write is slow' "$aged_write > 3 * $new_write"
holds 'aged, the flash programs more' "$aged_amplification > 2.5"
holds 'trimmed, a write is nearly as fast as on the new card' "$trimmed_write < 1.5 * $new_write"
holds 'trimmed, the flash programs little more than is written' "$trimmed_amplification < 1.6"
holds 'reads do not differ' "$aged_read < 1.5 * $new_read && $new_read < 1.5 * $aged_read"
holds 'nor do they after the fstrim' "$trimmed_read < 1.5 * $new_read && $new_read < 1.5 * $trimmed_read"
umount /mnt || fail 'umount'
e2fsck -f -n $card >/tmp/checked 2>&1 || { cat /tmp/checked; fail 'the file system is not clean'; }
if dmesg | grep -E 'mmc0.*(error|timeout|stuck|[Ff]ail)|I/O error'; then
    fail 'the kernel met errors'
fi
