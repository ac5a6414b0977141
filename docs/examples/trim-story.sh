# An aged card below a filesystem that never told it what was deleted: writes, one fstrim, writes. For the lab, with
# --filesystem, --age and --mkfs nodiscard (docs/lab.md). Variables: FILE_MIB, WRITE_MIB (how much of it is written).

FILE_MIB=${FILE_MIB:-256}
WRITE_MIB=${WRITE_MIB:-16}

# The seconds since the start.
now() {
    cut -d ' ' -f 1 /proc/uptime
}

# What 4 KiB writes cost until they are in flash, and reads, in microseconds; and what the flash programmed for each write:
# measure SEED NAME.
measure() {
    mark "$2"
    host=$(state_number host_units)
    flash=$(state_number unit_programs)
    begun=$(now)
    fio --name="$2" --filename=measured --size="${FILE_MIB}m" --rw=randwrite --bs=4k --io_size="${WRITE_MIB}m" --direct=1 --randseed="$1" \
        --end_fsync=1 --minimal >/dev/null || fail 'fio'
    ended=$(now)
    figure "$2: write us" "$(awk "BEGIN { printf \"%.0f\", ($ended - $begun) * 1e6 / ($WRITE_MIB * 256) }")"
    host=$(($(state_number host_units) - host))
    flash=$(($(state_number unit_programs) - flash))
    figure "$2: amplification" "$(awk "BEGIN { printf \"%.2f\", $flash / $host }")"
    begun=$(now)
    fio --name="$2" --filename=measured --size="${FILE_MIB}m" --rw=randread --bs=4k --io_size="${WRITE_MIB}m" --direct=1 --randseed="$1" \
        --minimal >/dev/null || fail 'fio'
    ended=$(now)
    figure "$2: read us" "$(awk "BEGIN { printf \"%.0f\", ($ended - $begun) * 1e6 / ($WRITE_MIB * 256) }")"
}

fio --name=lay --filename=measured --size="${FILE_MIB}m" --rw=write --bs=512k --direct=1 --end_fsync=1 --minimal >/dev/null || fail 'fio'
measure 1 aged
mark fstrim
fstrim -v "$DIR" || fail 'fstrim'
measure 2 trimmed
