# Errors on the lines between host controller and card: the kernel reports them, recovers, and no data is lost.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
# trial: --profile small.toml --controller no-cqe --no-delay --in-turn
# trial: --profile small.toml --controller hs200 --no-delay --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
head -c 4194304 /dev/urandom >/tmp/data
wanted=$(md5sum </tmp/data | cut -d ' ' -f 1)
if [ "$(attribute cmdq_en)" = 1 ]; then
    read_command=46 write_command=47
else
    read_command=18 write_command=25
fi

# At least as often, for what the kernel does then may fail too (CMD12 where nothing is to be stopped): how often the controller's driver has met an error.
met() {
    case $1 in
    command-timeout) name='Command Timeout' ;;
    command-crc) name='Command CRC' ;;
    data-timeout) name='Data Timeout' ;;
    data-crc) name='Data CRC' ;;
    esac
    sed -n "s/^# $name.*:[^0-9]*\([0-9]*\)/\1/p" /sys/kernel/debug/mmc0/err_stats
}

# Writes all with one error on the way, and reads it back with another: meet ERROR, the command with the data of each way.
meet() {
    dmesg -c >/dev/null
    [ "$1" = status ] || before=$(met "$1")
    ask ctl inject-host "$1" --command $write_command --after 3 --times 1 >/dev/null || fail "inject-host $1"
    dd if=/tmp/data of=$card bs=256k oflag=direct conv=notrunc,fsync 2>/tmp/error || { cat /tmp/error; dmesg | tail; fail "$1: writing"; }
    ask ctl inject-host "$1" --command $read_command --after 3 --times 1 >/dev/null || fail "inject-host $1"
    found=$(dd if=$card bs=256k count=16 iflag=direct 2>/tmp/error | md5sum | cut -d ' ' -f 1)
    [ "$found" = "$wanted" ] || { cat /tmp/error; dmesg | tail; fail "$1: what was read is not what was written"; }
    left=$(ask ctl state --json | sed -n '/"host_faults"/p' | tr -d ' ,')
    expect "$1: errors still to come" "$left" '"host_faults":[]'
    [ "$1" = status ] || holds "$1: errors that the kernel counted" "$(met "$1") - $before >= 2"
    if [ $read_command = 46 ]; then
        expect "$1: recoveries of the queue" "$(dmesg | grep -c 'running CQE recovery')" 2
    fi
    echo "ok: $1: $(dmesg | wc -l) lines of the kernel's"
}

for error in command-timeout command-crc data-timeout data-crc status; do
    meet $error
done

# Some in the middle of everything, and a file system lives through it. Not without the queue: there the kernel repeats what failed
# sector by sector, and a card that is busy with much else takes longer over a sector than its CSD promises.
if [ $read_command != 46 ]; then
    exit 0
fi
dmesg -c >/dev/null
mkfs.ext4 -q -F $card || fail 'mkfs.ext4'
mount -t ext4 $card /mnt || fail 'mount'
# Not one after the other, for after a few in a row the kernel gives a request up; and no failed data of a write, which it
# repeats sector by sector.
after=10
for error in command-timeout command-crc; do
    ask ctl inject-host $error --command $write_command --after $after --times 1 >/dev/null || fail "inject-host $error"
    after=$((after + 15))
done
after=10
for error in command-timeout command-crc data-timeout data-crc; do
    ask ctl inject-host $error --command $read_command --after $after --times 1 >/dev/null || fail "inject-host $error"
    after=$((after + 15))
done
number=0
while [ $number -lt 40 ]; do
    cp /tmp/data /mnt/$number || fail 'cp'
    number=$((number + 4))
done
sync
echo 3 >/proc/sys/vm/drop_caches
for file in /mnt/[0-9]*; do
    [ "$(md5sum <"$file" | cut -d ' ' -f 1)" = "$wanted" ] || { dmesg; cmp -l "$file" /tmp/data | head -n 5; fail "$file: something else"; }
done
echo "ok: files: $(dmesg | wc -l) lines of the kernel's"
umount /mnt || fail 'umount'
e2fsck -f -n $card >/tmp/checked 2>&1 || { cat /tmp/checked; fail 'ext4 is not clean'; }
ask ctl clear-faults >/dev/null || fail 'clear-faults'
expect 'the card is found as before' "$(attribute type)" MMC
