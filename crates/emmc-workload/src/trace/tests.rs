use super::*;

fn testdata(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../testdata/block_traces/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn trace(path: &str) -> Trace {
    read(path, &testdata(path)).unwrap()
}

/// btt counts 27 requests that reached the driver, 4264 sectors in all, 1024 in the largest, 1 in the smallest: half of
/// one was handed back and issued again.
#[test]
fn blktrace_and_blkparse_agree_with_each_other_and_with_btt() {
    let [binary, text] = ["blk_dwrite_4096.bin", "blk_dwrite_4096.txt"].map(trace);
    assert_eq!(binary.requests, text.requests);
    let moved: Vec<u64> =
        binary.requests.iter().map(|request| request.bytes / 512).filter(|bytes| *bytes > 0).collect();
    assert_eq!((moved.len(), moved.iter().max(), moved.iter().min()), (27, Some(&1024), Some(&1)));
    let written = binary.requests.iter().filter(|request| request.op == BlockOp::Write);
    assert_eq!(written.map(|request| request.bytes).sum::<u64>(), 4264 * 512);
    assert!(binary.requests.windows(2).all(|pair| pair[0].at <= pair[1].at));
}

#[test]
fn fio_iologs_of_both_versions_are_read() {
    let third = trace("fio_iolog_v3.log");
    assert_eq!((third.form.as_str(), third.requests.len()), ("fio iolog v3", 64));
    let [first, second] = [third.requests[0], third.requests[1]];
    assert_eq!((first.at, first.offset_bytes, first.bytes, first.op), (Nanos::ZERO, 12288, 4096, BlockOp::Write));
    assert_eq!((second.at, second.offset_bytes), (Nanos::from_micros(30), 192_512));
    let second =
        "fio version 2 iolog\n/f add\n/f open\n/f write 0 4096\n/f wait 500\n/f sync\n/f trim 4096 512\n/f close\n";
    let requests = read("f", second.as_bytes()).unwrap().requests;
    let told: Vec<_> = requests.iter().map(|request| (request.at.0, request.op, request.bytes)).collect();
    assert_eq!(told, [(0, BlockOp::Write, 4096), (500_000, BlockOp::Flush, 0), (500_000, BlockOp::Trim, 512)]);
}

#[test]
fn msr_times_are_in_100_ns() {
    let text =
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,1317441536,8192,1963\n";
    let requests = read("f", text.as_bytes()).unwrap().requests;
    assert_eq!((requests[0].op, requests[0].offset_bytes, requests[0].bytes), (BlockOp::Read, 7_014_609_920, 24576));
    assert_eq!((requests[1].at, requests[1].op), (Nanos(1_332_052_600), BlockOp::Write));
}

#[test]
fn flushes_and_fua_are_kept() {
    let text = "8,0 0 1 0.000000000 1 D FWFS 8 + 8 [a]\n8,0 0 2 0.000000500 1 D FN [a]\n8,0 0 3 0.000001000 1 D DS 16 + 8 [a]\n\
                8,0 0 4 0.000001500 1 P N [a]\nCPU0 (x):\n";
    let requests = read("f", text.as_bytes()).unwrap().requests;
    let told: Vec<_> = requests.iter().map(|request| (request.op, request.bytes, request.through)).collect();
    let expected = [
        (BlockOp::Flush, 0, false),
        (BlockOp::Write, 4096, true),
        (BlockOp::Flush, 0, false),
        (BlockOp::Trim, 4096, false),
    ];
    assert_eq!(told, expected);
}

#[test]
fn errors_name_the_field() {
    let cut = &testdata("blk_dwrite_4096.bin")[..100];
    assert!(read("f", cut).unwrap_err().to_string().starts_with("f: byte 64: record 2: 36 bytes are left; expected"));
    for (text, expected) in [
        ("", "f: it is empty"),
        ("x", "f: no trace is recognised in it"),
        ("fio version 9 iolog", "f, line 1: found \"fio version 9 iolog\""),
        ("fio version 2 iolog\n", "f: no request is in it"),
        ("fio version 2 iolog\n/f write x 1", "f, line 2: found \"x\"; expected a whole number"),
        ("fio version 2 iolog\n/f write 0 1\n/g read 0 1", "f, line 3: found \"/g\"; expected requests of one file"),
        ("fio version 3 iolog\n1 /f write 18446744073709551615 1", "f, line 2: found"),
        ("8,0 0 1 0.000000000 1 D", "f, line 1: found \"\"; expected R, W, D or F"),
        ("8,0 0 1 0.0 1 D R 0 + 8", "f, line 1: found \"0.0\"; expected seconds.nanoseconds"),
        ("8,0 0 1 0.000000000 1 D R 99999999999999999 + 8", "f, line 1: found"),
        ("1,h,0,Read,0,512,1\nx", "f, line 2: found \"x\"; expected time,host"),
        ("1,h,0,Read,0,512,1\n1,h,1,Read,0,512,1", "f, line 2: found"),
    ] {
        let told = read("f", text.as_bytes()).unwrap_err().to_string();
        assert!(told.starts_with(expected), "{told}");
    }
}

#[test]
fn plain_columns_are_read_and_sorted() {
    let requests = |text: &str| {
        let requests = read("f", text.as_bytes()).unwrap().requests;
        let of = |request: &TraceRequest| {
            (request.at.0, request.op, request.offset_bytes / 512, request.bytes / 512, request.discard)
        };
        requests.iter().map(of).collect::<Vec<_>>()
    };
    let five = "# ns dev lba sectors type\n\n5000 0 16 8 1\n2000 0 8 8 0\n2000 0 0 8 0\n";
    let expected =
        [(0, BlockOp::Write, 8, 8, false), (0, BlockOp::Write, 0, 8, false), (3000, BlockOp::Read, 16, 8, false)];
    assert_eq!(requests(five), expected);
    let csv = "time_us,op,lba,sectors\n0, W, 8, 8\n1.5,trim,8,8\n2,flush,0,0\r\n3,read,8,1\n3,d,8,1";
    let expected = [
        (0, BlockOp::Write, 8, 8, false),
        (1500, BlockOp::Trim, 8, 8, false),
        (2000, BlockOp::Flush, 0, 0, false),
        (3000, BlockOp::Read, 8, 1, false),
        (3000, BlockOp::Trim, 8, 1, true),
    ];
    assert_eq!(requests(csv), expected);
}

#[test]
fn wrong_columns_are_named() {
    for (text, error) in [
        ("time_us,op,lba,sectors", "f: no request is in it; expected fio's"),
        ("0 0 0 8 0\n1 0 0 8 2", "f, line 2: found \"2\"; expected type 0 (write) or 1 (read)"),
        ("0 0 0 8", "f, line 1: found \"0 0 0 8\"; expected five columns: time_ns device lba sectors type"),
        ("0 0 x 8 0", "f, line 1: found \"x\"; expected a whole number (lba)"),
        ("0 0 0 0 0", "f, line 1: found \"0\"; expected 1 to 1048576 sectors"),
        ("-1,w,0,8", "f, line 1: found \"-1\"; expected microseconds, 0 or more"),
        ("nan,w,0,8", "f, line 1: found \"nan\"; expected microseconds, 0 or more"),
        ("0,write", "f, line 1: found \"0,write\"; expected four columns: time_us,op,lba,sectors"),
        ("0,x,0,8", "f, line 1: found \"x\"; expected read, write, trim, discard or flush"),
        ("0 0 18446744073709551615 8 0", "f, line 1: found \"18446744073709551615\"; expected a range that ends"),
    ] {
        let found = read("f", text.as_bytes()).unwrap_err().to_string();
        assert!(found.starts_with(error), "{text:?}: {found}");
    }
}
