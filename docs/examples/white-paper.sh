# The workloads of a white paper on command queueing, one request at a time on ext4: what a request takes, what of it
# the card has, and the share of the rest. In a sweep each is a figure too. Variables: KIB (sizes of a request), PATTERN
# (sequential, random), AMOUNT (KiB a row). For the lab with --filesystem ext4, or for `cargo xtask guest run`.
. /guest/library.sh
[ -n "$DIR" ] || {
    wait_card
    DIR=/mnt
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/mmcblk0 || fail 'mkfs.ext4'
    mount -t ext4 -o noatime /dev/mmcblk0 $DIR || fail 'mount'
}
KIB=${KIB:-128 4}
PATTERN=${PATTERN:-sequential}
AMOUNT=${AMOUNT:-8192}
[ -n "$LAB_SCRIPT" ] || figure() { :; }

# One row: row read|write direct|sync KIB.
row() {
    case $1-$PATTERN in
    write-sequential) rw=write ;;
    read-sequential) rw=read ;;
    write-random) rw=randwrite ;;
    read-random) rw=randread ;;
    esac
    # Sync: through the page cache; a write returns when it is in the card.
    case $1-$2 in
    *-direct) option=--direct=1 ;;
    write-sync) option=--sync=1 ;;
    *) option=--direct=0 ;;
    esac
    amount=$AMOUNT
    [ "$3" -gt 16 ] || amount=$((AMOUNT / 4))
    sync
    echo 3 >/proc/sys/vm/drop_caches
    before=$(account "$1")
    fio --name=row --filename="$DIR/file" --size=32m --io_size=${amount}k --bs="$3k" --rw=$rw $option --randseed=1 \
        --invalidate=0 --clocksource=clock_gettime --minimal --terse-version=3 >/tmp/row || fail 'fio'
    after=$(account "$1")
    echo "$before $after $(cat /tmp/row)" | awk -v kind="$1" -v mode="$2" -v kib="$3" -v amount="$amount" '
        {
            split($0, fields, ";")
            # The mean of the total latencies.
            wall = kind == "read" ? fields[40] : fields[81]
            card = ($4 - $2) / (amount / kib)
            share = 100 * (1 - card / wall)
            printf "%s KiB %s %s: %.1f us, in the card %.1f us (%d requests), the rest %.0f %%, %.2f MB/s\n", \
                kib, mode, kind, wall, card, $3 - $1, share, kib * 1024 / wall
            printf "%.1f %.1f\n", wall, share >"/tmp/figures"
        }'
    read -r row_us row_share </tmp/figures
    figure "$3 KiB $2 $1: us" "$row_us"
    figure "$3 KiB $2 $1: rest %" "$row_share"
}

fio --name=file --filename="$DIR/file" --size=32m --bs=512k --rw=write --direct=1 --end_fsync=1 --minimal \
    --clocksource=clock_gettime >/dev/null || fail 'fio'
for kib in $KIB; do
    for mode in sync direct; do
        for kind in write read; do
            row $kind $mode "$kib"
        done
    done
done
