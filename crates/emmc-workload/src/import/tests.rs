use super::*;
use crate::result::measurement::Measurement;

fn testdata(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn saved(path: &str) -> SavedResult {
    read(path, &testdata(path)).unwrap()
}

fn cell<'a>(result: &'a SavedResult, row: &str, column: &str) -> &'a Measurement {
    let mut all = result.outcomes.iter().flat_map(|outcome| &outcome.measurements);
    all.find(|cell| cell.row == row && cell.column == column).unwrap_or_else(|| panic!("{row} {column}"))
}

fn error(text: &str) -> String {
    read("f", text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn warnings_of_fio_are_skipped() {
    let result = saved("bench_results/fio_3.33_mixed.json");
    let outcome = &result.outcomes[0];
    assert_eq!((result.engine.as_deref(), result.target.as_deref()), (Some("libaio"), Some("w/f")));
    assert_eq!(outcome.remarks.len(), 2, "{:?}", outcome.remarks);
    assert!(outcome.remarks[0].contains("tausworthe"));
    let reads = cell(&result, "mix", "random read");
    assert_eq!(
        (reads.block_bytes, reads.queue_depth, reads.requests, reads.bytes),
        (4096, 4, Some(994), Some(4_071_424))
    );
    assert_eq!((reads.order.as_str(), reads.mb_per_s, reads.stalls.as_ref()), ("random, mixed", 20.986_721, None));
    let latency = reads.read_us.as_ref().unwrap();
    assert_eq!((latency.count, latency.p50, latency.p999, latency.max), (994, 94.72, 12386.304, 12339.441));
    assert_eq!(latency.histogram.iter().map(|bucket| bucket.count).sum::<u64>(), 994);
    assert_eq!(outcome.read_bytes + outcome.written_bytes, 8 << 20);
}

#[test]
fn fio_without_bins_or_percentiles_keeps_the_rest() {
    let job = r#"{"fio version":"fio-2.2","jobs":[{"jobname":"a","job options":{"rw":"write","numjobs":"2"},
        "write":{"io_bytes":1024,"bw":512,"iops":16.0,"runtime":2000,"total_ios":32}}]}"#;
    let result = read("f", job.as_bytes()).unwrap();
    let write = cell(&result, "a", "write");
    assert_eq!((write.bytes, write.mb_per_s, write.block_bytes), (Some(1 << 20), 0.524_288, 32768));
    assert_eq!((write.queue_depth, &write.write_us), (2, &None));
}

/// A damaged figure would be a default, or be left out without a word.
#[test]
fn a_figure_of_fio_that_is_none_is_an_error() {
    let job = |options: &str, write: &str| {
        format!(
            "{{\"fio version\":\"fio-3\",\"jobs\":[{{\"jobname\":\"a\",\"job options\":{{\"rw\":\"write\"{options}}},\n\
             \"write\":{{\"io_bytes\":1048576,\"bw\":1024,\"iops\":16.0,\"runtime\":2000,\"total_ios\":32{write}}}}}]}}"
        )
    };
    for options in
        ["", ",\"bs\":\"4k\"", ",\"bs\":\"4k,8k\"", ",\"bs\":\"8k,\"", ",\"iodepth\":\"32\",\"numjobs\":\"2\""]
    {
        read("f", job(options, ",\"bw_bytes\":524288").as_bytes()).unwrap_or_else(|error| panic!("{options}: {error}"));
    }
    for (options, found) in [
        (",\"iodepth\":\"-1\"", "\"iodepth: -1\"; expected a whole number from 1"),
        (",\"iodepth\":\"0\"", "\"iodepth: 0\"; expected a whole number from 1"),
        (",\"numjobs\":\"4294967296\"", "\"numjobs: 4294967296\"; expected a whole number"),
        (",\"bs\":\"0\"", "\"bs: 0\"; expected a block size"),
        (",\"bs\":\"-4k\"", "\"bs: -4k\"; expected a block size"),
        (",\"blocksize\":\"99999999999G\"", "\"blocksize: 99999999999G\"; expected a block size"),
    ] {
        assert_eq!(
            error(&job(options, "")).split_once(found).map(|found| found.0),
            Some("f, line 1: found "),
            "{options}"
        );
    }
    let ranks = "\"50.000000\":-5,\"90.000000\":2,\"95.000000\":3,\"99.000000\":4,\"99.900000\":5";
    for (write, found) in [
        (",\"bw_bytes\":-5", "\"bw_bytes: -5\"; expected a figure"),
        (",\"bw_bytes\":\"x\"", "\"bw_bytes: \\\"x\\\"\"; expected a figure"),
        (",\"bw_bytes\":1e300", "\"bw_bytes: 1e+300\"; expected a figure from 0 to 2^64"),
        (&format!(",\"clat_ns\":{{\"mean\":1,\"min\":1,\"max\":9,\"percentile\":{{{ranks}}}}}"), "\"50.000000: -5\""),
    ] {
        let told = error(&job("", write));
        assert!(told.starts_with("f, line ") && told.contains(found), "{told}");
    }
}

/// The value of another job that only begins like it, or ends so, is not named.
#[test]
fn a_wrong_option_of_fio_is_named_in_its_line() {
    let text = "{\"fio version\":\"fio-3\",\"jobs\":[\n\
                {\"jobname\":\"a\",\"job options\":{\"iodepth\" : \"10\"}},\n\
                {\"jobname\":\"b\",\"job options\":{\"iodepth\" : \"1\", \"numjobs\" : \"0\"}},\n\
                {\"jobname\":\"c\",\"job options\":{\"iodepth\" : \"0\"}}]}";
    assert!(error(text).starts_with("f, line 3: found \"numjobs: 0\""), "{}", error(text));
    let last = text.replace("\"numjobs\" : \"0\"", "\"numjobs\" : \"1\"");
    assert!(error(&last).starts_with("f, line 4: found \"iodepth: 0\""), "{}", error(&last));
}

/// Under either name, an option of a job counts before that of all jobs.
#[test]
fn a_block_size_of_the_job_counts_before_that_of_all_jobs() {
    let text = "{\"fio version\":\"fio-3\",\"global options\":{\"bs\":\"4k\"},\"jobs\":[{\"jobname\":\"a\",\
                \"job options\":{\"rw\":\"write\",\"blocksize\":\"8k\"},\"write\":{\"io_bytes\":1048576,\
                \"bw_bytes\":524288,\"iops\":64.0,\"runtime\":2000,\"total_ios\":128}}]}";
    assert_eq!(cell(&read("f", text.as_bytes()).unwrap(), "a", "write").block_bytes, 8192);
}

/// A row of no size, or of one beyond all numbers, and a rate of 0.
#[test]
fn a_figure_of_iozone_that_is_none_is_an_error() {
    let head = "              kB  reclen    write  rewrite\n          102400       4     1000     1000\n";
    for (row, found) in [
        ("          102400       0     1000     1000\n", "\"0\"; expected a size in KiB above 0"),
        ("               0       8     1000     1000\n", "\"0\"; expected a size in KiB above 0"),
        ("18446744073709551615       8     1000     1000\n", "\"18446744073709551615\"; expected a size in KiB"),
        ("          102400       8        0     1000\n", "\"0\"; expected a rate above 0"),
    ] {
        assert_eq!(
            error(&format!("{head}{row}")).split_once(found).map(|found| found.0),
            Some("f, line 3: found "),
            "{row}"
        );
    }
    let excel = "\"Writer report\"\n        \"0\"\n\"1024\"   1000\n";
    assert_eq!(error(excel), "f, line 2: found \"\\\"0\\\"\"; expected a size in KiB above 0, below 2^54");
}

#[test]
fn iozone_cells_are_assigned_by_column() {
    let result = saved("bench_results/iozone_3.492.txt");
    let columns: Vec<&str> = result.outcomes[0].measurements.iter().map(|cell| cell.column.as_str()).collect();
    assert_eq!(columns, ["write", "rewrite", "random read", "random write"]);
    let read = cell(&result, "1024", "random read");
    assert_eq!((read.mb_per_s, read.requests, read.bytes), (290025.0 * 1024.0 / 1e6, Some(100), Some(100 << 20)));
    let remarks = &result.outcomes[0].remarks;
    assert!(remarks[0].starts_with("Command line used: ./iozone -e -I"));
    assert!(!remarks.contains(&THROUGH_CACHE.to_owned()), "{remarks:?}");
}

/// Without -I, alone or among other letters, the figures are those of memory.
#[test]
fn an_iozone_through_the_page_cache_is_remarked() {
    let text = String::from_utf8(testdata("bench_results/iozone_3.492.txt")).unwrap();
    let remarked = |flags: &str| {
        let result = read("f", text.replace("-e -I -a", flags).as_bytes()).unwrap();
        result.outcomes[0].remarks.contains(&THROUGH_CACHE.to_owned())
    };
    assert!(remarked("-e -a") && remarked("-a"));
    assert!(!remarked("-aIe") && !remarked("-a -I"));
}

/// Another unit, or a line of another program between the rows, would be speeds that nobody measured.
#[test]
fn an_iozone_table_is_read_whole_and_in_its_unit() {
    let head = "              kB  reclen    write  rewrite    read    reread\n";
    let row = |kib: u32| format!("          102400{kib:8}     1000     1000    1000      1000\n");
    let text = |between: &str| {
        format!("\tOutput is in kBytes/sec\n{head}{}{between}{}\niozone test complete.\n", row(4), row(8))
    };
    for between in ["", "\n", "  \n\n"] {
        assert_eq!(read("f", text(between).as_bytes()).unwrap().outcomes[0].measurements.len(), 8, "{between:?}");
    }
    let foreign = error(&text("[  123.4] mmc0: cache flush\n"));
    assert_eq!(
        foreign,
        "f, line 4: found \"[  123.4] mmc0: cache flush\"; expected a row of the table, as there are more of them below"
    );
    // A second table has its own heading.
    let two = format!("{}Run began\n{head}{}", text(""), row(16));
    assert_eq!(read("f", two.as_bytes()).unwrap().outcomes.len(), 2);
    for mode in ["OPS Mode. Output is in operations per second.", "Microseconds/op Mode. Output is in microseconds."] {
        let other = text("").replace("Output is in kBytes/sec", mode);
        assert!(error(&other).starts_with("f, line 1: found") && error(&other).contains("expected kBytes/sec"));
    }
}

#[test]
fn a_rate_of_flashbench_that_is_none_is_an_error() {
    let rows = |last: &str| format!("flashbench -O /dev/sda\n4MiB    8.84M/s \n2MiB    8.8M/s \n{last}");
    for bad in ["1MiB    0K/s\n", "1MiB    -912K/s\n512KiB  1M/s\n", "1MiB    nan\n512KiB  1M/s\n", "1MiB    7,4M/s\n"]
    {
        let found = error(&rows(bad));
        assert!(found.starts_with("f, line 4: found") && found.contains("a rate above 0"), "{found}");
    }
    // Also in the first row, or in all.
    for bad in ["0M/s", "-3M/s", "nanM/s"] {
        for rest in ["2MiB    8.8M/s\n1MiB    7M/s\n", ""] {
            let found = error(&format!("flashbench -O /dev/sda\n4MiB    {bad}\n{rest}"));
            assert!(found.starts_with("f, line 2: found") && found.contains("a rate above 0"), "{found}");
        }
    }
    for good in ["", "$ exit\n", "1MiB    7.", "1MiB"] {
        assert_eq!(read("f", rows(good).as_bytes()).unwrap().outcomes[0].measurements.len(), 2, "{good:?}");
    }
}

#[test]
fn the_excel_part_of_iozone_is_read_if_the_table_is_absent() {
    let text = "Excel output is below:\n\n\"Writer report\"\n        \"4\"  \"8\"\n\"1024\"   1000  2000\n\n\
                \"Random read report\"\n        \"4\"  \"8\"\n\"1024\"   10  0\n";
    let result = read("f", text.as_bytes()).unwrap();
    assert_eq!(result.outcomes[0].measurements.len(), 3, "a 0 was not measured");
    assert_eq!(cell(&result, "8", "write").mb_per_s, 2.048);
    let cut = "\"Writer report\"\n        \"4\"\n\"1024\"   1000  2000\n";
    assert_eq!(
        error(cut),
        "f, line 3: found \"\\\"1024\\\"   1000  2000\"; expected 1 rates, one for each record size"
    );
}

#[test]
fn flashbench_runs_are_distinguished_by_command_line() {
    let result = saved("bench_results/flashbench_62.txt");
    let suites: Vec<&str> = result.outcomes.iter().map(|outcome| outcome.suite.as_str()).collect();
    assert_eq!(suites, ["align", "open-au", "find-fat"]);
    let grid = &result.outcomes[0].grids[0];
    assert_eq!(grid.lines.len(), 14);
    assert!(grid.value("4KiB", "pre").is_some_and(|time| (1.0..100.0).contains(&time)));
    assert_eq!(cell(&result, "64KiB", "2 AUs").table, "open-au, random");
    assert_eq!(cell(&result, "256KiB", "AU 5").table, "find-fat, linear");
    assert_eq!(cell(&result, "64KiB", "2 AUs").bytes, None);
}

/// Source: what an eight-byte buffer leaves, as its users have reported.
#[test]
fn truncated_units_of_flashbench_are_named() {
    let text = b"align 8192\tpre 2.06ms\ton 43.78\xc2\xb5\tpost 43.781\xc2\tdiff -49389n\n\
                 align 4096\tpre 1us\ton 2us\tpost 3us\tdiff -412331\n";
    let result = read("f", text).unwrap();
    let grid = &result.outcomes[0].grids[0];
    assert_eq!(grid.lines[0].values, [Some(2060.0), Some(43.78), Some(43.781), Some(-49.389)]);
    assert_eq!(grid.lines[1].values[3], None);
    let remarks = &result.outcomes[0].remarks;
    assert_eq!(remarks.len(), 4);
    assert_eq!(remarks[3], "line 2: diff -412331: the unit was cut off, and perhaps digits: not used");
    let rates = read("f", b"4MiB    2.387G/ \n2MiB    8.84M/s \n").unwrap();
    assert_eq!(cell(&rates, "4MiB", "run 1").mb_per_s, 2387.0);
    assert!(rates.outcomes[0].remarks[0].contains("the number of open units"));
}

/// A text that was cut in its last line.
#[test]
fn a_line_of_flashbench_that_is_cut_keeps_its_times() {
    let result = read(
        "f",
        "align 8192\tpre 2ms\ton 3ms\tpost 2ms\tdiff 1ms\nalign 4096\tpre 1us\ton 4us\tpost 3us\tdi".as_bytes(),
    );
    let outcomes = result.unwrap().outcomes;
    assert_eq!(outcomes[0].grids[0].lines[1].values, [Some(1.0), Some(4.0), Some(3.0), None]);
    assert_eq!(outcomes[0].remarks, ["line 2: the line is cut before diff"]);
    // Only the last line of the text may be cut.
    let row = "align 4096\tpre 1us\ton 4us\tpost 3us\tdiff 3us\n";
    for cut in ["align 8192\tpre 2ms\ton 3ms\tpost 2ms", "align 8192\tpre 2ms\ton 3ms\tpost 2ms\tdi"] {
        assert!(read("f", format!("{row}{cut}\n\n").as_bytes()).is_ok());
        assert!(error(&format!("{cut}\n{row}")).starts_with("f, line 1: found \"align 8192"));
        assert!(error(&format!("{row}{cut}\n$ exit\n")).starts_with("f, line 2: found \"align 8192"));
    }
    assert!(error("align 8192\tpre 2ms\ton 3ms\tpost 2ms\tdaft 1ms\n").contains("expected align BYTES"));
}

#[test]
fn bonnie_and_dd_of_the_board_vendor_are_read() {
    let [before, after] = ["before", "after"].map(|when| saved(&format!("seeds_console/t30_bonnie_dd_{when}.txt")));
    for (result, block, rewrite, seconds) in [(&before, 12856.0, 9825.0, 28.9241), (&after, 25778.0, 19970.0, 13.6078)]
    {
        assert_eq!(result.outcomes.len(), 2);
        let out = cell(result, "colibri-t30", "block output");
        assert_eq!((out.mb_per_s, out.bytes), (block * 1024.0 / 1e6, Some(256 << 20)));
        assert_eq!(cell(result, "colibri-t30", "rewrite").mb_per_s, rewrite * 1024.0 / 1e6);
        let dd = cell(result, "1", "write");
        assert_eq!((dd.block_bytes, dd.requests), (4096, Some(65536)));
        assert!((dd.time_s.unwrap() / seconds - 1.0).abs() < 1e-9);
    }
    assert_eq!(cell(&before, "colibri-t30", "block input").mb_per_s, 395_316.0 * 1024.0 / 1e6);
    let figure = |name: &str| after.outcomes[0].figures.iter().find(|figure| figure.name == name).unwrap();
    assert_eq!((figure("block input").value, figure("random seeks").value), (None, None));
    assert_eq!((figure("random delete").value, figure("per-character output").value), (Some(5994.0), Some(8543.0)));
}

#[test]
fn table_and_csv_of_bonnie_2_agree() {
    let text = String::from_utf8(testdata("bench_results/bonnie_2.00a.txt")).unwrap();
    let csv = text.lines().last().unwrap();
    for text in [text.as_str(), csv] {
        let result = read("f", text.as_bytes()).unwrap();
        let names: Vec<&str> = result.outcomes[0].figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names.len(), 10, "{names:?}");
        assert!(result.outcomes[0].figures.iter().all(|figure| figure.value.is_none()));
    }
    // Fields of format 1.98 as its manual page numbers them.
    let told = csv.replacen("+++++,+++,+++++,+++,,,+++++", "5120,9,2560,3,,,10.5m", 1);
    let result = read("f", told.as_bytes()).unwrap();
    assert_eq!(cell(&result, "vm", "block output").mb_per_s, 5.24288);
    assert_eq!(cell(&result, "vm", "block input").mb_per_s, 10.5 * 1.048576);
}

#[test]
fn hdparm_dd_and_bonnie_are_read_from_one_transcript() {
    let result = saved("seeds_console/wrrel_off_colibri-imx6s.txt");
    let suites: Vec<&str> = result.outcomes.iter().map(|outcome| outcome.suite.as_str()).collect();
    assert_eq!((suites, result.target.as_deref()), (vec!["hdparm", "bonnie"], Some("/dev/mmcblk0")));
    let read = cell(&result, "1", "read");
    assert_eq!((read.bytes, read.block_bytes), (Some(238 << 20), 2 << 20));
    assert!((read.mb_per_s / 1.048576 - 78.8).abs() < 0.2, "hdparm's MB are 2^20: {}", read.mb_per_s);
}

#[test]
fn errors_name_the_line() {
    for (text, expected) in [
        ("", "f: it is empty; expected JSON of fio or of emmclab bench, or text of iozone"),
        ("hello", "f: no tool's result is in it; expected"),
        ("{\"schema\":\"emmclab.show/1\"}", "f: it is a document of the schema \"emmclab.show/1\"; expected"),
        ("{\"schema\":\"emmclab.bench/1\"}", "f: missing field"),
        ("{\n\"fio version\": 1,\n\"jobs\": [", "f, line 3: found \"\\\"jobs\\\": [\"; expected fio's JSON, whole"),
        ("{\"fio version\":\"3\",\"jobs\":[]}", "f, line 1: found \"{\"; expected \"jobs\" with requests"),
        (" Timing buffered disk reads: 2 MB in x seconds = 3 MB/sec", "f, line 1: found \"Timing"),
        ("\n12 bytes (1) copied, 0 s, 1 MB/s", "f, line 2: found \"12 bytes"),
        ("  kB  reclen    write\n", "f, line 1: found \"  kB  reclen    write\"; expected rows of"),
        ("  kB  reclen    write\n 100  4  x\n", "f, line 2: found \"x\"; expected a whole number"),
        ("align x\tpre 1us\ton 1us\tpost 1us\tdiff 1us", "f, line 1: found \"x\"; expected a boundary in bytes"),
        ("Version 1.03e  ------Sequential Output------\n", "f, line 1: found \"Version 1.03e"),
    ] {
        let told = error(text);
        assert!(told.starts_with(&expected.replace("\"Timing", "\" Timing")) || told.starts_with(expected), "{told}");
    }
}

#[test]
fn a_number_that_the_text_ends_in_is_not_used() {
    let table = "  kB  reclen    write  rewrite\n 100       4     1234     5678\n 100       8     2345     6789\n";
    let read = |text: &str| read("f", text.as_bytes()).unwrap();
    assert_eq!(read(table).outcomes[0].measurements.len(), 4);
    let cut = &read(&table[..table.len() - 3]).outcomes[0];
    assert_eq!(cut.measurements.len(), 3);
    assert_eq!(cut.remarks, ["line 3: rewrite 67: the text ends inside the number: not used"]);
    // A table whose spaces were lost does not show it.
    let lost = table.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    assert_eq!(read(&lost[..lost.len() - 3]).outcomes[0].measurements.len(), 4);
}

#[test]
fn numbers_of_open_units_are_at_least_one() {
    for count in ["0", "-3", "99999", "x"] {
        let told = error(&format!("$ flashbench -O --open-au-nr={count} /dev/sdb\n4MiB 9M/s\n2MiB 9M/s\n"));
        let expected =
            format!("f, line 1: found \"--open-au-nr {count}\"; expected a number of open units, 1 to 65535");
        assert_eq!(told, expected);
    }
}
