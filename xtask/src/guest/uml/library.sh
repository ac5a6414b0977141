
# In User-Mode Linux: the drivers are in the kernel, and nobody answers yet.
load_modules() {
    :
}

tell() {
    echo "$*" >>/host/told
}

ask() {
    fail "ask $*: User-Mode Linux has no channel to the host"
}

# The processor's counter is that of the host: fio must read the kernel's clock.
fio() {
    command fio --clocksource=clock_gettime "$@"
}
