# flashbench and iozone on a slowed card agree with `emmclab bench` on the simulated one, within 15 %.
# trial: --profile small.toml --controller no-cqe --no-delay
. /guest/library.sh
wait_card
card=/dev/mmcblk0
wrong=0

# Compares two figures of which the measured one is DILATION times too slow: compare NAME MEASURED DILATION SIMULATED.
compare() {
    awk -v name="$1" -v measured="$2" -v times="$3" -v simulated="$4" 'BEGIN {
        share = measured * times / simulated - 1
        printf "%s: %s x %g, simulated %s: %+.0f %%\n", name, measured, times, simulated, share * 100
        exit !(share > -0.15 && share < 0.15)
    }' && return
    wrong=$((wrong + 1))
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

# Takes figures with a command until all are right: what else the machine does meanwhile only adds. At most three times.
until_right() {
    for attempt in 1 2 3; do
        wrong=0
        "$@"
        set_dilation 0
        [ $wrong != 0 ] || return 0
    done
    fail "$wrong figures are not what they should be"
}

# What was never written is read without flash, on both.
ask bench '--suite flashbench-align --read-only --no-queueing' >/tmp/simulated
on_boundaries() {
    set_dilation 200
    flashbench -a $card --blocksize=16384 --count=3 >/tmp/flashbench || fail 'flashbench -a'
    cat /tmp/flashbench
    compare 'flashbench -a, on a boundary of 1 MiB' "$(flashbench_on 1048576)" 0.005 "$(word /tmp/simulated 1MiB 3)"
    compare 'flashbench -a, on a boundary of 32 KiB' "$(flashbench_on 32768)" 0.005 "$(word /tmp/simulated 32KiB 3)"
}
until_right on_boundaries

if [ ! -x /usr/bin/iozone ]; then
    echo 'SKIPPED: iozone is not in this guest'
    exit 0
fi
# iozone with records of RECORD KiB, a file of SIZE KiB, DILATION times slower: file RECORD SIZE DILATION.
file() {
    blkdiscard $card
    set_dilation "$3"
    iozone -e -I -a -s "$2k" -r "$1k" -i 0 -i 1 -i 2 -w -f $card >/tmp/iozone || { cat /tmp/iozone; fail 'iozone'; }
    column=0
    for name in write rewrite read reread 'random read' 'random write'; do
        column=$((column + 1))
        compare "iozone $1k $name" "$(word /tmp/iozone "$2" $((column + 2)))" "$3" "$(word /tmp/simulated "$1" $((column + 1)))"
    done
}
for words in '4 128 500' '128 1024 100'; do
    set -- $words
    ask bench "--suite iozone --rows $1 --size $2KiB --no-queueing" >/tmp/simulated
    until_right file "$@"
done
