# A bus that is not good enough for its mode, on a real kernel: emmclab finds the errors and a clock without, and sets the clock back.
# trial: --profile small.toml --controller hs200 --no-delay --in-turn
# trial: --profile small.toml --controller no-cqe --no-delay --in-turn
. /guest/library.sh
. /guest/says.sh
wait_card
card=/dev/mmcblk0
export COLUMNS=200

clock() {
    cat /sys/kernel/debug/mmc0/clock
}

dd if=/dev/urandom of=$card bs=1M count=32 oflag=direct conv=notrunc 2>/dev/null || fail writing
before=$(clock)
md5sum <$card >/tmp/content

# A good bus.
emmclab 0 bus $card --time 2s --lower
says 'The bus is clean at 200 MHz'
expect 'clock of the good bus' "$(clock)" "$before"

# One that damages a block now and then above 120 MHz: the kernel repeats the read, and nobody else would see it.
ask ctl inject-host data-crc --command 18 --above 120MHz --every 20 >/dev/null || fail inject-host
ask ctl inject-host data-crc --command 17 --above 120MHz --every 20 >/dev/null || fail inject-host
emmclab 1 bus $card --time 2s
says 'The bus has errors at 200 MHz'
says 'data CRC errors'
says 'were not tried (--lower)'
emmclab 1 bus $card --time 2s --lower
cat /tmp/said
says 'clean at 100 MHz'
says 'max-frequency = <100000000>;'
expect 'clock afterwards' "$(clock)" "$before"
emmclab 1 bus $card --time 2s --clock 50MHz --json
says '"clock_hz": 50000000'
emmclab 1 bus $card --time 1s --clock 900MHz
says 'outside of what the controller can give'
expect 'clock afterwards' "$(clock)" "$before"

# A test that is ended by a signal sets the clock back too.
/guest/emmclab bus $card --time 20s --clock 100MHz,50MHz >/tmp/said 2>/tmp/complained &
process=$!
sleep 25
expect 'clock during the test' "$(clock)" 100000000
kill -TERM $process
wait $process
expect 'exit code after SIGTERM' $? 2
expect 'clock after SIGTERM' "$(clock)" "$before"
ask ctl clear-faults >/dev/null || fail clear-faults

# What is on no card has no bus.
emmclab 3 bus /tmp --time 1s
md5sum <$card >/tmp/after
cmp /tmp/content /tmp/after || fail 'something was written'
