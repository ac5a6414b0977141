# fio on a slowed card agrees with `emmclab sim run` for the same requests: one at a time within 15 %; at depth 16 the
# difference is printed. Both pay what command queueing adds: CMD44 and CMD45, and polls every 20 us.
# trial: --profile small.toml --controller no-cqe --dilate 100
# trial: --profile small.toml --controller cqe --dilate 100
. /guest/library.sh
wait_card
card=/dev/mmcblk0
wrong=0

# Compares figures in us: compare NAME MEASURED SIMULATED JUDGED; fails where they differ; with - for JUDGED it only says by how much.
compare() {
    echo "$1: $2 us, simulated $3 us: $(awk "BEGIN { printf \"%+.0f %%\", ($2 / $3 - 1) * 100 }")"
    [ "$4" != - ] || return 0
    awk "BEGIN { exit !($2 > 0.85 * $3 && $2 < 1.15 * $3) }"
}

# The time of a request of the last phase of a job: simulated PHASES.
simulated() {
    ask simulate "{\"seed\":1,\"phases\":[$1]}" | tail -n 1 | cut -d ' ' -f 3
}

flush() {
    dd if=/dev/null of=$card conv=notrunc,fsync 2>/dev/null || fail 'flushing'
}

set_dilation 0
fio --name=fill --filename=$card --size=64m --rw=write --bs=128k --direct=1 --minimal >/dev/null || fail 'filling'
flush
past='{"kind":"fill","range":["0%","64MiB"],"block":"128KiB"},{"kind":"flush"}'
depths=1
[ "$CONTROLLER" != cqe ] || depths='1 16'
for depth in $depths; do
    judged=yes
    [ "$depth" = 1 ] || judged=-
    for kind in randread read randwrite write; do
        for kib in 4 128; do
            case $kind in
            randread) phase=random_read direction=read ;;
            read) phase=sequential_read direction=read ;;
            randwrite) phase=random direction=write ;;
            write) phase=sequential direction=write ;;
            esac
            # What this machine adds is the same for each request: the shorter the request, the slower the card.
            amount=128 pace=500
            [ $kib = 4 ] || amount=2048 pace=100
            # What else the machine does meanwhile only adds: a figure that is off is taken again, twice.
            for attempt in 1 2 3; do
                set_dilation $pace
                took=$(fio_us $direction --filename=$card --size=64m --io_size=${amount}k --rw=$kind --bs=${kib}k --ioengine=libaio \
                    --iodepth="$depth" --randseed="$depth") || fail 'fio'
                set_dilation 0
                flush
                past="$past,{\"kind\":\"$phase\",\"block\":\"${kib}KiB\",\"range\":[\"0%\",\"64MiB\"],\"amount\":\"${amount}KiB\",\"queue_depth\":$depth}"
                expected=$(simulated "$past")
                past="$past,{\"kind\":\"flush\"}"
                if compare "fio $kind ${kib}k depth $depth" "$took" "$expected" $judged; then
                    break
                fi
                [ $attempt -lt 3 ] || wrong=$((wrong + 1))
            done
        done
    done
done
[ $wrong = 0 ] || fail "$wrong figures are not what they should be"
