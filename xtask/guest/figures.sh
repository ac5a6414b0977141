# fio on one clock with the card agrees with `emmclab sim run` for the same requests. One at a time, the card's account
# of them is within 2 % of the simulation, and the rest of fio's time is what kernel and fio cost; at depth with command
# queueing fio's own time is within 2 %. Random places come once each, in both: a write to a place that is still in the
# cache costs no flash, and how many of those a few requests draw is luck.
# trial: --profile small.toml --controller no-cqe --clock virtual --in-turn
# trial: --profile small.toml --controller cqe --clock virtual --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
wrong=0

# Compares figures in us: within NAME FOUND SIMULATED; counts where they differ by more than 2 %.
within() {
    echo "$1: $2 us, simulated $3 us: $(awk "BEGIN { printf \"%+.1f %%\", ($2 / $3 - 1) * 100 }")"
    awk "BEGIN { exit !($2 > 0.98 * $3 && $2 < 1.02 * $3) }" || wrong=$((wrong + 1))
}

# The time of a request of the last phase of a job: simulated PHASES.
simulated() {
    ask simulate "{\"seed\":1,\"phases\":[$1]}" | tail -n 1 | cut -d ' ' -f 3
}

flush() {
    dd if=/dev/null of=$card conv=notrunc,fsync 2>/dev/null || fail 'flushing'
}

fio --name=fill --filename=$card --size=64m --rw=write --bs=128k --direct=1 --minimal >/dev/null || fail 'filling'
flush
past='{"kind":"fill","range":["0%","64MiB"],"block":"128KiB"},{"kind":"flush"}'
depths=1
[ "$CONTROLLER" != cqe ] || depths='1 8 16 32'
for depth in $depths; do
    for kind in randread read randwrite write; do
        for kib in 4 512; do
            case $kind in
            randread) phase=sequential_read shuffled=true direction=read ;;
            read) phase=sequential_read shuffled=false direction=read ;;
            randwrite) phase=sequential shuffled=true direction=write ;;
            write) phase=sequential shuffled=false direction=write ;;
            esac
            # fio counts whole ms: at depth the more requests, the less that matters.
            amount=2048
            [ "$depth" = 1 ] || amount=8192
            [ $kib = 4 ] || amount=32768
            before=$(account $direction)
            took=$(fio_us $direction --filename=$card --size=64m --io_size=${amount}k --rw=$kind --bs=${kib}k --ioengine=libaio \
                --iodepth="$depth" --randseed="$depth" --clocksource=clock_gettime) || fail 'fio'
            after=$(account $direction)
            flush
            past="$past,{\"kind\":\"$phase\",\"shuffled\":$shuffled,\"block\":\"${kib}KiB\",\"range\":[\"0%\",\"64MiB\"],\"amount\":\"${amount}KiB\",\"queue_depth\":$depth}"
            expected=$(simulated "$past")
            past="$past,{\"kind\":\"flush\"}"
            if [ "$depth" = 1 ]; then
                mean=$(echo "$before $after" | awk '{ printf "%.2f", ($4 - $2) / ($3 - $1) }')
                within "$kind ${kib}k, the card's time" "$mean" "$expected"
                echo "$kind ${kib}k, kernel and fio: $(awk "BEGIN { printf \"%.1f\", $took - $mean }") us"
            else
                within "fio $kind ${kib}k depth $depth" "$took" "$expected"
            fi
        done
    done
done
[ $wrong = 0 ] || fail "$wrong figures are not what they should be"
