# The requests of the kernel's ext4, which the model (emmc-workload/src/fs) makes as well: of each sync one write of the
# data, one of the journal's blocks, a flush and a commit block; small files next to each other, whatever their folder.
# trial: --profile generic-8g --controller cqe --no-delay --memory 512 --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
trace=/sys/kernel/tracing
mount -t tracefs none $trace 2>/dev/null
echo 8000 >$trace/buffer_size_kb
mkfs.ext4 -q -F -b 4096 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 $card 2097152k || fail 'mkfs.ext4'
mount -t ext4 $card /mnt || fail 'mount'
mkdir /mnt/d
sync
sleep 6
journal=$(debugfs -R 'stat <8>' $card 2>/dev/null | sed -n 's/^(0-[0-9]*):\([0-9]*\)-.*/\1/p')
expect 'first block of the journal' "$journal" 262144

begin() {
    sync
    echo >$trace/trace
    echo 1 >$trace/events/block/block_rq_issue/enable
    echo 1 >$trace/tracing_on
}

# Requests since begin by kind: data, journal with its blocks, flushes, commit blocks, home locations with their blocks.
counted() {
    echo 0 >$trace/tracing_on
    sed -n 's/.*block_rq_issue: [0-9,]* \([A-Z]*\) [0-9]* () \([0-9]*\) + \([0-9]*\) .*/\1 \2 \3/p' $trace/trace | awk '
        $1 == "FF" { flushes++; next }
        $1 ~ /R/ { next }
        { block = $2 / 8 }
        block >= 262144 && block < 278528 { if ($1 ~ /^WF/) commits++; else { logs++; logged += $3 / 8 }; next }
        block < 32768 { homes++; home += $3 / 8; next }
        { data++ }
        END { printf "%d %d:%d %d %d %d:%d", data, logs, logged, flushes, commits, homes, home }'
}

each() {
    i=0
    while [ $i -lt 100 ]; do
        eval "$1"
        i=$((i + 1))
    done
}

begin
each 'dd if=/dev/zero of=/mnt/d/f$i bs=16k count=1 conv=fsync 2>/dev/null'
expect 'create, write and fsync' "$(counted)" '100 100:698 100 100 0:0'
begin
each 'mv /mnt/d/f$i /mnt/d/g$i; dd if=/dev/null of=/mnt/d/g$i bs=4k count=0 conv=notrunc,fsync 2>/dev/null'
expect 'rename and fsync' "$(counted)" '0 100:397 100 100 0:0'
begin
each 'dd if=/dev/zero of=/mnt/d/g$i bs=4k count=1 conv=notrunc,fsync 2>/dev/null'
expect 'overwrite and fsync' "$(counted)" '100 100:200 100 100 0:0'
begin
each 'dd if=/dev/zero of=/mnt/d/g$i bs=4k seek=4 count=1 conv=notrunc,fsync 2>/dev/null'
expect 'append and fsync' "$(counted)" '100 100:400 100 100 0:0'
begin
each 'mv /mnt/d/g$i /mnt/d/h$i'
sleep 45
expect 'rename, and 45 seconds' "$(counted)" '0 1:10 1 1 2:9'
