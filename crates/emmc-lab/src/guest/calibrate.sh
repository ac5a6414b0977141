# Requests that show the host: `emmclab lab calibrate`. Each series is a phase and a result of fio, CARD-KIND-KIB-DEPTH.
series() {
    series_name=$CARD-$1-$2-$3
    mark "$series_name"
    fio_record "$series_name" --filename="$DEVICE" --size=64m --io_size="$4" --rw="rand$1" --bs="$2k" --direct=1 \
        --ioengine=libaio --iodepth="$3" >/tmp/fio || { cat /tmp/fio; fail "fio $series_name"; }
    mark between
    dd if=/dev/null of="$DEVICE" conv=notrunc,fsync 2>/dev/null || fail 'flushing'
}

# Nothing was written before, so reads need no flash.
for kind in read write; do
    case $CARD in
    fast)
        series $kind 4 1 1m
        ;;
    middle)
        series $kind 4 32 8m
        ;;
    slow)
        series $kind 4 1 1m
        series $kind 128 1 16m
        series $kind 4 32 1m
        ;;
    esac
done
