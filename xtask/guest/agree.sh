# The same workloads on two kernels that share only their drivers' source, QEMU's guest and User-Mode Linux, both on one
# clock with the card. Of each workload: accesses of registers, the card's account of its requests, fio's mean latency.
# The host compares the two kernels (xtask/src/guest/agree.rs).
# trial: --profile small.toml --controller cqe --both --in-turn
# trial: --profile small.toml --controller no-cqe --both --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0

# workload NAME DEPTH KIB AMOUNT ARGUMENTS of fio
workload() {
    name=$1 depth=$2 kib=$3 amount=$4
    shift 4
    before=$(ask counts)
    fio --name=agree --filename=$card --size=64m --randseed=7 --clocksource=clock_gettime --minimal --terse-version=3 \
        --ioengine=libaio --iodepth="$((depth > 0 ? depth : 1))" --bs="${kib}k" --io_size="$amount" "$@" >/tmp/fio || { cat /tmp/fio; fail "$name"; }
    # The mean of the total latencies of reads and of writes.
    echo "workload $name $depth $before $(ask counts) $(cut -d ';' -f 40,81 /tmp/fio | tr ';' ' ')"
}

fio --name=fill --filename=$card --size=64m --rw=write --bs=512k --direct=1 --end_fsync=1 --minimal >/dev/null || fail 'filling'
for rw in read write; do
    workload "$rw-4k" 1 4 4m --rw=$rw --direct=1
    workload "rand$rw-4k" 1 4 4m --rw=rand$rw --direct=1
    workload "rand$rw-4k" 16 4 4m --rw=rand$rw --direct=1
    workload "$rw-512k" 1 512 16m --rw=$rw --direct=1
    # Through the page cache: what the program waits for is not the card's time.
    workload "$rw-cached" 0 16 16m --rw=$rw --invalidate=1 --end_fsync=1
done
