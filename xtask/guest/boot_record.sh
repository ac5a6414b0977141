# The recording of a boot, as `emmclab trace record --at-boot` has the kernel make it: every request since the card was
# found is in it. Times are not compared: the clock of such a recording moves by jiffies in User-Mode Linux.
# trial: --profile small.toml --controller cqe --uml -- trace_instance=emmclab-boot,block:block_bio_queue,block:block_split,block:block_bio_backmerge,block:block_bio_frontmerge,block:block_rq_merge,block:block_rq_issue,block:block_rq_requeue,block:block_rq_complete,mmc:mmc_request_start,mmc:mmc_request_done,iomap:iomap_dio_rw_begin,writeback:writeback_dirty_folio,block:block_getrq,block:block_rq_insert trace_buf_size=4096K
. /guest/library.sh
wait_card

# The parameters of this kernel are those that emmclab asks for.
parameters=$(/guest/emmclab trace record --at-boot --buffer 4MiB | sed -n 's/^ *\(trace_instance=.*\)/\1/p')
[ -n "$parameters" ] || fail 'emmclab names no parameters'
grep -q -F -- "$parameters" /proc/cmdline || fail "the kernel's command line is not: $parameters"

dd if=/dev/mmcblk0 of=/dev/null bs=64k count=64 2>/dev/null || fail 'reading'
dd if=/dev/zero of=/dev/mmcblk0 bs=4k count=64 seek=256 oflag=dsync 2>/dev/null || fail 'writing'

requests=0
for disk in /sys/block/mmcblk*; do
    [ -e "$disk/stat" ] || continue
    read -r reads _ _ _ writes _ <"$disk/stat"
    requests=$((requests + reads + writes))
done
[ $requests -gt 64 ] || fail "the boot made $requests requests"

/guest/emmclab trace record --from-boot -o /out/boot.dat || fail "from-boot: exit code $?"
/guest/emmclab trace analyse /out/boot.dat --json >/tmp/analysis || [ $? = 1 ] || fail 'analyse'
number() {
    grep -o "\"$1\": *[0-9]*" /tmp/analysis | head -n 1 | tr -dc 0-9
}
[ "$(number requests)" = $requests ] || fail "$(number requests) requests in the recording, the kernel counted $requests"
[ "$(number lost_events)" = 0 ] || fail "$(number lost_events) events lost"
echo "ok: $requests requests of the boot, as many as the kernel counted"
/guest/emmclab trace record --from-boot -o /out/again.dat && fail 'a recording that was ended is found again'
[ ! -e /out/again.dat ] || fail 'it left a file'
