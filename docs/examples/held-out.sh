#!/bin/sh
# Speeds of workloads in the lab beside their prediction by `bench --host FILE`: held-out.sh HOST.toml CPU_NS ROW...
# A row is PROFILE,CONTROLLER,RW,SIZE,DEPTH,AMOUNT: generic-8g,cqe,randread,16k,4,16m. The first 64 MiB of the card hold
# data. Needs emmclab with the lab's kernel, and python3.
set -eu
host=$(realpath "$1")
ns=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"phases":[{"kind":"fill","range":["0%","64MiB"],"block":"128KiB"},{"kind":"flush"}]}' >fill.json
# shellcheck disable=SC2016
echo 'fio_record x --filename=$DEVICE --size=64m --io_size=$AMOUNT --rw=$RW --bs=$BS --direct=1 --ioengine=libaio' \
    '--iodepth=$DEPTH $LOG >/dev/null' >one.sh
lab() {
    rm -rf used
    cp -r card used
    emmclab lab run --card used --controller "$controller" --script one.sh --json --env "RW=$rw" --env "BS=$size" --env "DEPTH=$depth" \
        --env "AMOUNT=$amount" "$@"
}
echo '| row | lab, MB/s | `bench --host` | off | without the host |'
echo '|---|---|---|---|---|'
for row in "$@"; do
    IFS=, read -r profile controller rw size depth amount <<EOF
$row
EOF
    rm -rf card
    emmclab sim create card "sim:$profile" >/dev/null
    emmclab sim run card --job fill.json >/dev/null
    # Recording the requests costs processor time: in a run in which that is free.
    lab --cpu-ns 0 --env LOG=--write_iolog=/out/x.log --out log >/dev/null
    lab --cpu-ns "$ns" --env LOG= >lab.json
    queueing=
    [ "$controller" = cqe ] || queueing=--no-queueing
    replay() {
        emmclab bench sim:card --suite replay --trace log/x.log --queue-depth "$depth" $queueing --json "$@" || [ $? = 1 ]
    }
    replay --host "$host" >host.json
    replay >bare.json
    python3 - "$row" <<'EOF'
import json, sys
job = json.load(open("lab.json"))["fio"][0]["result"]["jobs"][0]
lab = (job["read"]["bw_bytes"] or job["write"]["bw_bytes"]) / 1e6
host, bare = (json.load(open(f"{name}.json"))["measurements"][0]["mb_per_s"] for name in ("host", "bare"))
print(f"| {sys.argv[1]} | {lab:.1f} | {host:.1f} | {(host / lab - 1) * 100:+.1f} % | {bare:.1f} |", flush=True)
EOF
done
