# An aged card below a filesystem that never told it what was deleted: writes, one fstrim, writes. For the lab, with
# --filesystem, --age and --mkfs nodiscard (docs/lab.md). Variables: FILE_MIB, WRITE_MIB (how much of it is written),
# TRIM (0: without the fstrim).

FILE_MIB=${FILE_MIB:-256}
WRITE_MIB=${WRITE_MIB:-16}
TRIM=${TRIM:-1}

# Units written by the host and programmed so far, and what flushes took in us.
so_far() {
    echo "$(state_number host_units) $(state_number unit_programs) $(account other)"
}

# The mean latency of 4 KiB requests one at a time, in us: latency read|write SEED.
latency() {
    fio --name=measure --filename=measured --size="${FILE_MIB}m" --rw="rand$1" --bs=4k --io_size="${WRITE_MIB}m" --direct=1 \
        --randseed="$2" --minimal --terse-version=3 >/tmp/fio || fail 'fio'
    [ "$1" = read ] && field=40 || field=81
    cut -d ';' -f $field /tmp/fio
}

# What 4 KiB writes cost with their share of the flush at the end, and reads, in microseconds; and what the flash
# programmed for each write: measure SEED NAME.
measure() {
    mark "$2"
    before=$(so_far)
    write_us=$(latency write "$1")
    flush=$(account other)
    sync
    echo "$before $(so_far) $write_us $flush" | awk -v count=$((WRITE_MIB * 256)) \
        '{ printf "%.0f %.2f\n", $9 + ($8 - $11) / count, ($6 - $2) / ($5 - $1) }' >/tmp/measured
    read -r write_us amplification </tmp/measured
    figure "$2: write us" "$write_us"
    figure "$2: amplification" "$amplification"
    figure "$2: read us" "$(latency read "$1" | cut -d . -f 1)"
}

fio --name=lay --filename=measured --size="${FILE_MIB}m" --rw=write --bs=512k --direct=1 --end_fsync=1 --minimal >/dev/null || fail 'fio'
measure 1 aged
if [ "$TRIM" != 0 ]; then
    mark fstrim
    fstrim -v "$DIR" || fail 'fstrim'
fi
measure 2 trimmed
