# flashbench and iozone on one clock with the card: a request takes the time that `emmclab bench` simulates, within 2 %,
# and what kernel and program cost, which is stated here.
# trial: --profile small.toml --controller no-cqe --uml
. /guest/library.sh
wait_card
card=/dev/mmcblk0
wrong=0

# The most that kernel and program cost, in us, where only system calls, registers and interrupts cost.
cost=10
# The kernel asks with growing pauses whether a flush has ended. Another timer may end a pause early: by half of it, in
# us at most.
pause=32768

# Compares two times of a request in us: compare NAME MEASURED SIMULATED REQUESTS; their number is 0 without a flush.
compare() {
    awk -v name="$1" -v measured="$2" -v simulated="$3" -v requests="$4" -v cost="$cost" -v pause="$pause" 'BEGIN {
        more = measured - simulated
        early = requests ? pause / requests : 0
        printf "%s: %.1f us, simulated %.1f us: %+.1f us\n", name, measured, simulated, more
        exit !(more > -0.02 * simulated - early && more < 0.02 * simulated + cost)
    }' || wrong=$((wrong + 1))
}

# The word of that number in the first line that begins with a word: word FILE FIRST NUMBER.
word() {
    awk -v first="$2" -v number="$3" '$1 == first { print $number; exit }' "$1"
}

# Times in us of a line of flashbench, which prints 1.2ms or 850us: the second is `on`.
flashbench_on() {
    awk -v bytes="$1" '$1 == "align" && $2 == bytes {
        value = $6; sub(/[a-zµ]*s$/, "", value)
        if ($6 ~ /[0-9]s$/) value *= 1e6; else if ($6 ~ /ms$/) value *= 1e3; else if ($6 ~ /ns$/) value /= 1e3
        print value; exit
    }' /tmp/flashbench
}

# What was never written is read without flash, on both.
ask bench '--suite flashbench-align --read-only --no-queueing' >/tmp/simulated
flashbench -a $card --blocksize=16384 --count=3 >/tmp/flashbench || fail 'flashbench -a'
cat /tmp/flashbench
compare 'flashbench -a, on a boundary of 1 MiB' "$(flashbench_on 1048576)" "$(word /tmp/simulated 1MiB 3)" 0
compare 'flashbench -a, on a boundary of 32 KiB' "$(flashbench_on 32768)" "$(word /tmp/simulated 32KiB 3)" 0

if [ ! -x /usr/bin/iozone ]; then
    echo 'SKIPPED: iozone is not in this guest'
    [ $wrong = 0 ] || fail "$wrong figures are not what they should be"
    exit 0
fi
# iozone with records of RECORD KiB, a file of SIZE KiB: file RECORD SIZE.
file() {
    blkdiscard $card
    ask bench "--suite iozone --rows $1 --size $2KiB --no-queueing" >/tmp/simulated
    iozone -e -I -a -s "$2k" -r "$1k" -i 0 -i 1 -i 2 -w -f $card >/tmp/iozone || { cat /tmp/iozone; fail 'iozone'; }
    column=0
    for name in write rewrite read reread 'random read' 'random write'; do
        column=$((column + 1))
        # Both print KiB/s.
        measured=$(word /tmp/iozone "$2" $((column + 2))) simulated=$(word /tmp/simulated "$1" $((column + 1)))
        requests=$(($2 / $1))
        case $name in *read) requests=0 ;; esac
        compare "iozone $1k $name" "$(awk "BEGIN { print $1 * 1e6 / $measured }")" "$(awk "BEGIN { print $1 * 1e6 / $simulated }")" \
            $requests
    done
}
file 4 8192
file 128 65536
[ $wrong = 0 ] || fail "$wrong figures are not what they should be"
