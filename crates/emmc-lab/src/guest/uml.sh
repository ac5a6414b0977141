
# In User-Mode Linux: output and files go to a folder of the host, and the drivers are in the kernel.
open_channels() {
    export mailbox="/sys/bus/pci/devices/$(reader)/config"
    ln -s /host/output /dev/guest.output
}

save_files() {
    cp -r /out/. /host/out
}

# As in QEMU, with a read after each piece: the kernel takes back the buffers of its posted writes when it reads, and has
# 256 of them.
tell() {
    printf '%s' "$*" | fold -b -w 96 | while IFS= read -r tell_part || [ -n "$tell_part" ]; do
        printf '%s' "$tell_part" | dd of="$mailbox" bs=128 seek=30 conv=notrunc status=none
        dd if="$mailbox" of=/dev/null bs=4 count=1 status=none
    done
    echo | dd of="$mailbox" bs=128 seek=30 conv=notrunc status=none
}

# The mailbox has the answer too, but each of its pages costs five processes.
ask() {
    tell "ask $*"
    ask_number=$(($(cat /tmp/asked 2>/dev/null) + 1))
    echo "$ask_number" >/tmp/asked
    {
        read -r ask_status ask_lines
        cat
    } <"/host/answer-$ask_number"
    return "$ask_status"
}

load_modules() {
    :
}

# The processor's counter is that of the host: fio must read the kernel's clock.
fio() {
    command fio --clocksource=clock_gettime "$@"
}

# The kernel removes its devices at the end, and waits for ever for one that is mounted.
poweroff() {
    while read -r poweroff_device poweroff_place poweroff_rest; do
        case $poweroff_device in
        /dev/mmcblk*) umount "$poweroff_place" ;;
        esac
    done </proc/mounts
    command poweroff "$@"
}

# In the lab: the next requests are those of a phase with this name.
mark() {
    ask "mark $*"
}

# In the lab: a number that the script has measured: figure NAME VALUE.
figure() {
    ask "figure $*"
}

# Runs fio; its results are those of this name in the lab's: fio_record NAME ARGUMENTS.
fio_record() {
    fio_record_name=$1
    shift
    fio --name="$fio_record_name" --output-format=json --output="/out/$fio_record_name.json" "$@"
}

# In the lab: shuts down and starts again: the script runs once more, with BOOT one higher, on the same card.
restart() {
    ask restart || exit 1
    exit 0
}

# In the lab: machine and card lose their power at this instant; then as after `restart`.
power_loss() {
    ask power-loss
    fail 'the power is still on'
}
