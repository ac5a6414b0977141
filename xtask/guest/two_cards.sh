# Two cards on one clock, each behind a controller of its own: both are found and used at the same time, neither slows the
# other, and each holds its own data.
# trial: --profile small.toml --second generic-32g --controller cqe --clock virtual --twice --in-turn
. /guest/library.sh
wait_card
tries=0
until [ -b /dev/mmcblk1 ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail 'there is no second card'
    sleep 0.1
done
cat /sys/block/mmcblk0/size /sys/block/mmcblk1/size | sort -u | wc -l | grep -q 2 || fail 'both cards have one size'

# Random writes, then each block is read and verified. Prints the seconds: verified CARD...
verified() {
    for card in "$@"; do
        set -- "$@" --name="$card" --filename="/dev/$card"
        shift
    done
    begun=$(cut -d ' ' -f 1 /proc/uptime)
    fio --rw=randwrite --bs=4k --size=2m --direct=1 --ioengine=libaio --iodepth=8 --verify=crc32c --do_verify=1 \
        --randseed=7 --clocksource=clock_gettime --minimal "$@" >/tmp/fio || { cat /tmp/fio; fail "fio $*"; }
    awk "BEGIN { print $(cut -d ' ' -f 1 /proc/uptime) - $begun }"
}

# Each has its own name in a place that fio does not use: no write of one reaches the other.
for card in mmcblk0 mmcblk1; do
    yes $card | dd of=/dev/$card bs=1M count=1 seek=64 iflag=fullblock oflag=direct 2>/dev/null || fail 'writing'
done
first=$(verified mmcblk0)
second=$(verified mmcblk1)
both=$(verified mmcblk0 mmcblk1)
echo "alone $first and $second s, together $both s"
awk "BEGIN { exit !($both < 0.8 * ($first + $second)) }" || fail 'they do not work at the same time'
for card in mmcblk0 mmcblk1; do
    dd if=/dev/$card bs=1M count=1 skip=64 iflag=direct 2>/dev/null | sort -u | head -n 2 | grep -q -x $card ||
        fail "$card does not hold its own data"
done
echo 'ok: each holds its own data'
