
# In User-Mode Linux: output and files go to a folder of the host, and the drivers are in the kernel.
open_channels() {
    export mailbox="/sys/bus/pci/devices/$(reader)/config"
    mkdir -p /host
    mount -t hostfs host /host
    ln -s /host/output /dev/guest.output
    ln -s /host/files.tar /dev/guest.files
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
