# probe on a real kernel, on one clock with the card: its verdicts are those of the same card in simulated time.
# trial: --profile toshiba-7au --controller no-cqe --uml --in-turn
# trial: --profile sandisk-20au --controller no-cqe --uml --in-turn
# trial: --profile generic-8g --controller no-cqe --uml --in-turn
# trial: --profile friendlyelec-emmc-8g --controller no-cqe --uml --in-turn
# trial: --profile jetson-tx1-8g --controller no-cqe --uml --in-turn
# trial: --profile colibri-imx6s-4g --controller no-cqe --uml --in-turn
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0
export COLUMNS=200

# Lines "parameter|value" of a report's table.
verdicts() {
    sed -n '/^Parameters/,/^Advice/p' "$1" | awk -F '  +' 'NF >= 4 { print $2 "|" $3 }'
}
verdict() {
    sed -n "s/^$2|//p" "$1"
}

ask probe --write >/tmp/simulated || { cat /tmp/simulated; fail 'probe of the simulated card'; }
emmclab 0 probe $card --write --destroy --yes-i-mean mmcblk0
verdicts /tmp/simulated >/tmp/expected
verdicts /tmp/said >/tmp/found
expect parameters "$(wc -l </tmp/found)" 16

# Times and sizes of caches hold the kernel's own part, and the bus is as fast as the kernel sets it.
for name in page 'least useful write' 'allocation unit' 'open units' 'open, random order' 'order of writes' parts \
    'region for FATs' 'work while idle' discard; do
    expect "$name" "$(verdict /tmp/found "$name")" "$(verdict /tmp/expected "$name")"
done
# The simulated card keeps no data; this one has all of its capacity.
[ "$(verdict /tmp/found capacity)" = "$(($(cat /sys/block/mmcblk0/size) / 2048)) MiB" ] || { cat /tmp/said; fail capacity; }
for name in 'command overhead' 'read rate' 'write cache' 'fast after a rest' 'fast again'; do
    echo "$name: $(verdict /tmp/found "$name"), simulated $(verdict /tmp/expected "$name")"
done
